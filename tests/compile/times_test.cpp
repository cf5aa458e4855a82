// When runs and nodes took place: by the host's clock, and by a device that records and has a timer.
#include <algorithm>

#include <gtest/gtest.h>

#include "tessera/compile/executable.h"
#include "tessera/compile/host_memory.h"
#include "tessera/compile/reference_kernel.h"

namespace tessera {
namespace {

class RepeatedWork : public Recording {
 public:
  explicit RepeatedWork(std::function<void()> work) : work_(std::move(work)) {}
  void launch() override { work_(); }

 private:
  std::function<void()> work_;
};

class CountingTimer : public DeviceTimer {
 public:
  explicit CountingTimer(size_t marks) : marks_(marks) {}
  void mark() override {
    ASSERT_LT(points_.size(), marks_);
    points_.push_back(Clock::now());
  }
  std::vector<Clock::time_point> points() override { return points_; }

 private:
  size_t marks_;
  std::vector<Clock::time_point> points_;
};

class RecordingQueue : public HostQueue {
 public:
  std::unique_ptr<Recording> record(const std::function<void()>& work) override {
    return std::make_unique<RepeatedWork>(work);
  }
  std::unique_ptr<DeviceTimer> timer(size_t marks) override { return std::make_unique<CountingTimer>(marks); }
};

// Plain loops with the interface of a device with memory of its own.
class RecordingDevice : public HostMemoryDevice {
 public:
  DeviceDescription description() const override { return {.name = "recording", .versions = {}}; }
  bool host_accessible() const override { return false; }
  std::vector<KernelCandidate> candidates(const Node&) const override { return {reference_candidate()}; }
  std::shared_ptr<Queue> queue() override { return std::make_shared<RecordingQueue>(); }
};

constexpr const char* kGraph = R"(graph g(input %x: fp32[2, 2], parameter %w: fp32[2], state %s: fp32[4]) {
  %root = sqrt(%w)
  %y = multiply(%x, %root)
  %z = reshape(%y) {shape = [4]}
  %next = add(%s, %z)
  output z = %z
  update %s = %next
})";

struct Compiled {
  std::shared_ptr<Variables> variables;
  std::unique_ptr<Executable> executable;
};

Compiled compile_on(const std::shared_ptr<Device>& device, CompileOptions options = {}) {
  options.passes.fuse = false;
  Compiled result{std::make_shared<Variables>(device), compile(*parse_graph(kGraph), device, options)};
  result.variables->set("w", Tensor::from<float>({2}, {4, 9}));
  result.variables->set("s", Tensor(DataType::fp32, {4}));
  result.executable->bind(result.variables);
  result.executable->stage({{"x", Tensor::from<float>({2, 2}, {1, 2, 3, 4})}});
  return result;
}

void expect_in_order(const std::vector<Clock::time_point>& points) {
  EXPECT_TRUE(std::is_sorted(points.begin(), points.end()));
}

TEST(Times, OfCompilationAreGapless) {
  const Compiled compiled = compile_on(Device::reference());
  const auto& phases = compiled.executable->phases();
  for (size_t i = 1; i < phases.size(); ++i) EXPECT_EQ(phases[i].time.begin, phases[i - 1].time.end);
  expect_in_order({phases[0].time.begin, compiled.executable->passes().front().time.begin,
                   compiled.executable->passes().back().time.end, phases[0].time.end});
  for (const NodeReport& node : compiled.executable->nodes()) EXPECT_GE(node.choice.microseconds(), 0);
}

TEST(Times, OfRunsByTheHostAlone) {
  const Compiled compiled = compile_on(Device::reference());
  const auto runs = compiled.executable->trace({}, 3);
  for (const RunTimes& run : runs) {
    EXPECT_FALSE(run.recorded);
    EXPECT_FALSE(run.device.has_value());
    expect_in_order({run.inputs.begin, run.work.begin, run.outputs.begin, run.outputs.end});
  }
  // Each is given before the one ahead of it is received.
  for (size_t i = 1; i < runs.size(); ++i)
    expect_in_order({runs[i].work.end, runs[i - 1].outputs.begin, runs[i].outputs.begin});
  // Each of them was a run.
  EXPECT_EQ(compiled.variables->get("s").to_doubles(), (std::vector<double>{6, 18, 18, 36}));
}

TEST(Times, OfRunsByTheDeviceToo) {
  const Compiled compiled = compile_on(std::make_shared<RecordingDevice>());
  const auto runs = compiled.executable->trace({}, 3);
  EXPECT_FALSE(runs[0].recorded);
  EXPECT_TRUE(runs[1].recorded && runs[2].recorded);
  for (const RunTimes& run : runs) {
    ASSERT_TRUE(run.device.has_value());
    expect_in_order({run.inputs.begin, run.device->begin, run.device->end, run.outputs.end});
  }
  EXPECT_EQ(compiled.variables->get("s").to_doubles(), (std::vector<double>{6, 18, 18, 36}));
}

TEST(Times, OfNodesAreInOrderAndAliasesTakeNone) {
  for (const auto& device : {Device::reference(), std::shared_ptr<Device>(new RecordingDevice)}) {
    CompileOptions options;
    options.passes.frozen = true;
    const Compiled compiled = compile_on(device, options);
    const NodeTimes times = compiled.executable->profile({});
    EXPECT_EQ(times.recorded, !device->host_accessible());
    const auto& nodes = compiled.executable->nodes();
    ASSERT_EQ(times.nodes.size(), nodes.size());
    std::vector<Clock::time_point> points;
    for (size_t i = 0; i < nodes.size(); ++i) {
      EXPECT_EQ(nodes[i].once, nodes[i].operator_name == "sqrt") << nodes[i].name;
      const bool takes_none = nodes[i].once || nodes[i].kernel == "alias";
      if (takes_none) {
        EXPECT_EQ(times.nodes[i].microseconds(), 0) << nodes[i].name;
      }
      if (nodes[i].once) continue;
      points.push_back(times.nodes[i].begin);
      points.push_back(times.nodes[i].end);
    }
    EXPECT_EQ(points.size(), 2 * 3U);
    expect_in_order(points);
  }
}

TEST(Times, OfNodesAreTakenByTheHostWhereItLooksAfterEach) {
  const Compiled compiled = compile_on(std::make_shared<RecordingDevice>(), {.check_finite = true});
  EXPECT_FALSE(compiled.executable->profile({}).recorded);
}

}  // namespace
}  // namespace tessera
