// Runs of which a recording cannot hold all: on a device that records, with kernels that need the host.
#include <gtest/gtest.h>

#include "tessera/compile/executable.h"
#include "tessera/compile/host_memory.h"
#include "tessera/compile/reference_kernel.h"

#include "support/detached_device.h"
#include "support/random_tensor.h"

namespace tessera::testing {
namespace {

using Log = std::vector<std::string>;

class LoggedRecording : public Recording {
 public:
  LoggedRecording(std::function<void()> work, std::shared_ptr<Log> log)
      : work_(std::move(work)), log_(std::move(log)) {}
  void launch() override {
    log_->emplace_back("launch");
    work_();
  }

 private:
  std::function<void()> work_;
  std::shared_ptr<Log> log_;
};

class HostTimer : public DeviceTimer {
 public:
  void mark() override { points_.push_back(Clock::now()); }
  std::vector<Clock::time_point> points() override { return points_; }

 private:
  std::vector<Clock::time_point> points_;
};

class LoggedQueue : public HostQueue {
 public:
  explicit LoggedQueue(std::shared_ptr<Log> log) : log_(std::move(log)) {}
  std::unique_ptr<Recording> record(const std::function<void()>& work) override {
    log_->emplace_back("record");
    return std::make_unique<LoggedRecording>(work, log_);
  }
  std::unique_ptr<DeviceTimer> timer(size_t) override { return std::make_unique<HostTimer>(); }

 private:
  std::shared_ptr<Log> log_;
};

// Says which operator runs, and lets some need the host.
class LoggedKernel : public Kernel {
 public:
  LoggedKernel(std::unique_ptr<Kernel> kernel, std::string name, bool recordable, std::shared_ptr<Log> log)
      : kernel_(std::move(kernel)), name_(std::move(name)), recordable_(recordable), log_(std::move(log)) {}
  bool recordable() const override { return recordable_; }
  void run(const KernelArguments& arguments) override {
    log_->push_back(name_);
    kernel_->run(arguments);
  }

 private:
  std::unique_ptr<Kernel> kernel_;
  std::string name_;
  bool recordable_;
  std::shared_ptr<Log> log_;
};

class SegmentDevice : public HostMemoryDevice {
 public:
  explicit SegmentDevice(std::string of_host) : of_host_(std::move(of_host)) {}
  DeviceDescription description() const override { return {.name = "segments"}; }
  bool host_accessible() const override { return false; }
  std::shared_ptr<Queue> queue() override { return std::make_shared<LoggedQueue>(log); }
  std::vector<KernelCandidate> candidates(const Node& node) const override {
    const std::string name = node.operator_name();
    const bool recordable = of_host_.find(name) == std::string::npos;
    return {{.name = "logged", .plan = [this, name, recordable](const KernelRequest& request) -> KernelMaker {
               return [this, name, recordable, &request] {
                 return std::make_unique<LoggedKernel>(reference_candidate().create(request), name,
                                                       recordable, log);
               };
             }}};
  }

  std::shared_ptr<Log> log = std::make_shared<Log>();

 private:
  std::string of_host_;
};

// The update is a copy at the end of the run: `s` is an output, too.
constexpr const char* kGraph = R"(graph g(input %x: fp32[4], state %s: fp32[4]) {
  %a = exp(%x)
  %b = add(%a, %s)
  %v = reshape(%b) {shape = [2, 2]}
  %c = tanh(%v)
  %w = reshape(%c) {shape = [4]}
  %d = negate(%w)
  output d = %d
  output s = %s
  update %s = %d
})";

// What the last of four runs did; all give what the reference gives.
Log log_of_run(const std::string& of_host) {
  CompileOptions options;
  options.passes.fuse = false;
  const auto outcome = [&](const std::shared_ptr<Device>& device, const std::shared_ptr<Log>& log) {
    const auto executable = compile(*parse_graph(kGraph), device, options);
    const auto variables = std::make_shared<Variables>(device);
    variables->set("s", Tensor::from<float>({4}, {1, 2, 3, 4}));
    executable->bind(variables);
    std::vector<Tensor> results;
    for (uint64_t run = 0; run < 4; ++run) {
      if (run == 3 && log != nullptr) log->clear();
      const auto outputs = executable->run({{"x", random_tensor(DataType::fp32, {4}, -1, 1, run)}});
      results.push_back(outputs.at("d"));
      results.push_back(outputs.at("s"));
    }
    results.push_back(variables->get("s"));
    return results;
  };
  const auto device = std::make_shared<SegmentDevice>(of_host);
  const std::vector<Tensor> actual = outcome(device, device->log);
  const std::vector<Tensor> expected = outcome(Device::reference(), nullptr);
  for (size_t i = 0; i < expected.size(); ++i) EXPECT_TRUE(actual[i].identical(expected[i])) << of_host << i;
  return *device->log;
}

TEST(Segments, AreOneWhereNothingNeedsTheHost) {
  EXPECT_EQ(log_of_run(""), (Log{"launch", "exp", "add", "tanh", "negate"}));
}

TEST(Segments, AreCutAroundStepsThatNeedTheHost) {
  EXPECT_EQ(log_of_run("tanh"), (Log{"launch", "exp", "add", "tanh", "launch", "negate"}));
  EXPECT_EQ(log_of_run("add, tanh"), (Log{"launch", "exp", "add", "tanh", "launch", "negate"}));
  EXPECT_EQ(log_of_run("exp, negate"), (Log{"exp", "launch", "add", "tanh", "negate"}));
  EXPECT_EQ(log_of_run("exp, tanh"), (Log{"exp", "launch", "add", "tanh", "launch", "negate"}));
}

TEST(Segments, AreNoneWhereAllNeedsTheHost) {
  EXPECT_EQ(log_of_run("exp, add, tanh, negate"), (Log{"exp", "add", "tanh", "negate"}));
}

// The host measures nodes one by one then.
TEST(Segments, AreMeasuredByTheHost) {
  for (const bool needs_host : {false, true}) {
    const auto device = std::make_shared<SegmentDevice>(needs_host ? "tanh" : "");
    CompileOptions options;
    options.passes.fuse = false;
    const auto executable = compile(*parse_graph(kGraph), device, options);
    const auto variables = std::make_shared<Variables>(device);
    variables->set("s", Tensor(DataType::fp32, {4}));
    executable->bind(variables);
    EXPECT_EQ(executable->profile({{"x", Tensor(DataType::fp32, {4})}}).recorded, !needs_host);
  }
}

class HostReferenceDevice : public DetachedDevice {
 public:
  std::vector<KernelCandidate> candidates(const Node&) const override { return {host_reference_candidate()}; }
};

TEST(HostReference, GivesTheBitsOfTheReference) {
  const auto run = [](const std::shared_ptr<Device>& device) {
    const auto graph = parse_graph(R"(graph g(input %x: fp16[8, 16], parameter %w: fp16[16, 4]) {
  %y = matmul(%x, %w)
  %m, %indices = top_k(%y) {k = 2}
  output y = %y
  output indices = %indices
})");
    const auto executable = compile(*graph, device);
    const auto variables = std::make_shared<Variables>(device);
    variables->set("w", random_tensor(DataType::fp16, {16, 4}, -1, 1, 1));
    executable->bind(variables);
    std::vector<std::map<std::string, Tensor>> outputs;
    for (uint64_t i = 0; i < 3; ++i)
      outputs.push_back(executable->run({{"x", random_tensor(DataType::fp16, {8, 16}, -1, 1, 2 + i)}}));
    EXPECT_EQ(executable->nodes().front().kernel, device->host_accessible() ? "reference" : "reference.host");
    return outputs;
  };
  const auto actual = run(std::make_shared<HostReferenceDevice>());
  const auto expected = run(Device::reference());
  for (size_t i = 0; i < expected.size(); ++i) {
    for (const auto& [name, tensor] : expected[i]) EXPECT_TRUE(actual[i].at(name).identical(tensor)) << name;
  }
}

}  // namespace
}  // namespace tessera::testing
