// What a device is told before it is asked for kernels.
#include <gtest/gtest.h>

#include "tessera/compile/executable.h"
#include "tessera/compile/host_memory.h"

#include "support/expect_error.h"

namespace tessera::testing {
namespace {

class Nothing : public Kernel {
  void run(const KernelArguments&) override {}
};

// Keeps what it was told, and whether its work goes on.
class ListeningDevice : public HostMemoryDevice {
 public:
  DeviceDescription description() const override { return {.name = "listening"}; }

  std::shared_ptr<void> prepare_kernels(const std::vector<KernelRequest>& requests,
                                        bool tuned) const override {
    tuned_ = tuned;
    EXPECT_TRUE(told_.empty());
    for (const KernelRequest& request : requests) told_.push_back(request);
    working_ = true;
    return {&working_, [](void* working) { *static_cast<bool*>(working) = false; }};
  }

  std::vector<KernelCandidate> candidates(const Node& node) const override {
    EXPECT_TRUE(working_);
    EXPECT_TRUE(was_told(node)) << node.name();
    return {{.name = "nothing",
             .plan = [refuses = refuses_](const KernelRequest&) -> std::variant<Refusal, KernelMaker> {
               if (refuses) return Refusal{"no"};
               return [] { return std::make_unique<Nothing>(); };
             }}};
  }

  bool was_told(const Node& node) const {
    for (const KernelRequest& request : told_) {
      if (&request.node == &node) return true;
    }
    return false;
  }

  mutable std::vector<KernelRequest> told_;
  mutable bool working_ = false;
  mutable bool tuned_ = false;
  bool refuses_ = false;
};

constexpr const char* kGraph =
    "graph g(input %x: fp32[4], parameter %w: fp32[4]) {\n"
    "  %e = exp(%w)\n  %y = multiply(%x, %e)\n  %z = reshape(%y) {shape = [2, 2]}\n  output z = %z\n}\n";

CompileOptions frozen_and_free() {
  CompileOptions options;
  options.passes.frozen = true;
  options.passes.deterministic = false;
  options.passes.fuse = false;
  return options;
}

TEST(Anticipation, HoldsEveryNodeThatNeedsAKernelAsItWillBeAskedFor) {
  const auto device = std::make_shared<ListeningDevice>();
  const auto executable = compile(*parse_graph(kGraph), device, frozen_and_free());
  ASSERT_EQ(device->told_.size(), 2U);  // a reshape shows the same memory
  EXPECT_EQ(device->told_[0].node.operator_name(), "exp");
  EXPECT_EQ(device->told_[0].frozen_inputs, std::vector<bool>{false});  // runs once: nothing is prepared
  EXPECT_EQ(device->told_[1].frozen_inputs, (std::vector<bool>{false, true}));
  EXPECT_FALSE(device->told_[1].deterministic);
  EXPECT_FALSE(device->told_[1].tf32);
  EXPECT_FALSE(device->working_);
}

TEST(Anticipation, SaysWhetherTheTunerWillAsk) {
  for (const bool tune : {false, true}) {
    const auto device = std::make_shared<ListeningDevice>();
    CompileOptions options = frozen_and_free();
    options.tune = tune;
    compile(*parse_graph(kGraph), device, options);
    EXPECT_EQ(device->tuned_, tune);
  }
}

TEST(Anticipation, EndsWhenNoKernelIsFound) {
  const auto device = std::make_shared<ListeningDevice>();
  device->refuses_ = true;
  EXPECT_ERROR(compile(*parse_graph(kGraph), device, frozen_and_free()), ErrorCode::unsupported, "nothing");
  EXPECT_FALSE(device->working_);
}

}  // namespace
}  // namespace tessera::testing
