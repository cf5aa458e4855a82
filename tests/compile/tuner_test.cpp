// What the tuner times, takes and remembers, on a device whose kernels are made for it.
#include <chrono>
#include <fstream>
#include <thread>

#include <gtest/gtest.h>

#include "tessera/compile/executable.h"
#include "tessera/compile/host_memory.h"

#include "support/temporary_folder.h"

namespace tessera::testing {
namespace {

// Adds 1 after a while, or something else.
class SlowAddition : public Kernel {
 public:
  SlowAddition(std::chrono::microseconds duration, float addend, bool writes)
      : duration_(duration), addend_(addend), writes_(writes) {}
  void run(const KernelArguments& arguments) override {
    std::this_thread::sleep_for(duration_);
    if (!writes_) return;
    const auto* x = static_cast<const float*>(arguments.inputs[0]);
    auto* y = static_cast<float*>(arguments.outputs[0]);
    for (int i = 0; i < 8; ++i) y[i] = x[i] + addend_;
  }

 private:
  std::chrono::microseconds duration_;
  float addend_;
  bool writes_;
};

struct Offer {
  std::string name;
  int microseconds = 0;
  float addend = 1;
  bool writes = true;
  bool fallback = false;
};

class OfferingDevice : public HostMemoryDevice {
 public:
  explicit OfferingDevice(std::vector<Offer> offers) : offers_(std::move(offers)) {}
  DeviceDescription description() const override { return {.name = "offering"}; }
  bool worth_tuning(const Node&) const override { return true; }
  std::vector<KernelCandidate> candidates(const Node&) const override {
    std::vector<KernelCandidate> result;
    for (const Offer& offer : offers_) {
      KernelCandidate candidate;
      candidate.name = offer.name;
      candidate.fallback = offer.fallback;
      candidate.refusal = [](const KernelRequest&) { return std::string(); };
      candidate.create = [offer](const KernelRequest&) {
        return std::make_unique<SlowAddition>(std::chrono::microseconds(offer.microseconds), offer.addend,
                                              offer.writes);
      };
      result.push_back(std::move(candidate));
    }
    return result;
  }

 private:
  std::vector<Offer> offers_;
};

NodeReport choose(std::vector<Offer> offers, const std::string& file = "", bool measure = true) {
  const auto graph = parse_graph("graph g(input %x: fp32[8]) {\n  %y = exp(%x)\n  output y = %y\n}");
  CompileOptions options;
  options.tune = measure;
  options.tuning_file = file;
  return compile(*graph, std::make_shared<OfferingDevice>(std::move(offers)), options)->nodes().front();
}

TEST(Tuner, TakesTheFastest) {
  const NodeReport report = choose({{"slow", 20'000}, {"fast", 0}});
  EXPECT_EQ(report.kernel, "fast");
  EXPECT_GT(report.candidates[0].microseconds, report.candidates[1].microseconds);
}

TEST(Tuner, LeavesOutWhatDisagreesWithTheFirstOrWritesNothing) {
  EXPECT_EQ(
      choose({{"right", 20'000}, {.name = "wrong", .addend = 2}, {.name = "idle", .writes = false}}).kernel,
      "right");
}

TEST(Tuner, NeverTimesAFallbackBesideOthers) {
  const NodeReport report = choose({{"slow", 20'000}, {.name = "any", .fallback = true}});
  EXPECT_EQ(report.kernel, "slow");
  EXPECT_EQ(report.candidates[1].microseconds, -1);
  EXPECT_EQ(choose({{.name = "any", .fallback = true}}).kernel, "any");
}

TEST(Tuner, RemembersInItsFileAndMeasuresWhatIsNew) {
  const TemporaryFolder folder;
  const std::string file = (folder.path() / "tuning.json").string();
  EXPECT_EQ(choose({{"first", 20'000}, {"second", 0}}, file).kernel, "second");
  // Not measured again: the first would win now.
  EXPECT_EQ(choose({{"first", 0}, {"second", 20'000}}, file).kernel, "second");
  EXPECT_EQ(choose({{"first", 0}, {"second", 20'000}}, file, /*measure=*/false).kernel, "second");
  EXPECT_EQ(choose({{"first", 0}, {"second", 20'000}, {"third", 20'000}}, file).kernel, "first");
}

TEST(Tuner, RebuildsADamagedFile) {
  const TemporaryFolder folder;
  const std::string file = (folder.path() / "tuning.json").string();
  std::ofstream(file) << "{\"version\": 1, \"devices\": {";
  EXPECT_EQ(choose({{"slow", 20'000}, {"fast", 0}}, file).kernel, "fast");
  EXPECT_EQ(choose({{"slow", 0}, {"fast", 20'000}}, file).kernel, "fast");
}

}  // namespace
}  // namespace tessera::testing
