// Which kernel is taken where some refuse, and what is no refusal.
#include <gtest/gtest.h>

#include "tessera/compile/executable.h"
#include "tessera/compile/host_memory.h"
#include "tessera/compile/reference_kernel.h"

#include "support/expect_error.h"

namespace tessera::testing {
namespace {

using Plan = std::function<std::variant<Refusal, KernelMaker>(const KernelRequest& request)>;

// A candidate of the test's before the reference.
class ChoiceDevice : public HostMemoryDevice {
 public:
  explicit ChoiceDevice(Plan plan) : plan_(std::move(plan)) {}
  DeviceDescription description() const override { return {.name = "choice"}; }
  std::vector<KernelCandidate> candidates(const Node&) const override {
    return {{.name = "first", .plan = plan_}, reference_candidate()};
  }

 private:
  Plan plan_;
};

NodeReport choose(const Plan& plan) {
  const auto graph = parse_graph("graph g(input %x: fp32[8]) {\n  %y = exp(%x)\n  output y = %y\n}");
  return compile(*graph, std::make_shared<ChoiceDevice>(plan))->nodes().front();
}

TEST(KernelChoice, GoesOnAfterARefusalAndKeepsItsReason) {
  const NodeReport report = choose([](const KernelRequest&) { return Refusal{"not today"}; });
  EXPECT_EQ(report.kernel, "reference");
  ASSERT_EQ(report.candidates.size(), 2U);
  EXPECT_EQ(report.candidates[0].refused, "not today");
}

TEST(KernelChoice, TakesNothingElseForARefusal) {
  for (const ErrorCode code :
       {ErrorCode::device_fault, ErrorCode::out_of_memory, ErrorCode::unsupported, ErrorCode::internal}) {
    const auto planning = [&](const KernelRequest&) -> KernelMaker { fail(code, "the machine fails"); };
    EXPECT_ERROR(choose(planning), code, "the machine fails", "in kernel first of node 'y': exp of fp32[8]");
    const auto making = [&](const KernelRequest&) -> KernelMaker {
      return [code]() -> std::unique_ptr<Kernel> { fail(code, "the machine fails"); };
    };
    EXPECT_ERROR(choose(making), code, "the machine fails", "in kernel first of node 'y': exp of fp32[8]");
  }
}

// A kernel is made of what its plan has found out.
TEST(KernelChoice, PlansOnce) {
  int plans = 0;
  choose([&](const KernelRequest& request) -> KernelMaker {
    ++plans;
    return [&request] { return reference_candidate().create(request); };
  });
  EXPECT_EQ(plans, 1);
}

}  // namespace
}  // namespace tessera::testing
