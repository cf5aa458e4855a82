// Random problems: what every kernel makes of them is what the reference makes of them.
#include <set>

#include <gtest/gtest.h>

#include "tessera/graph/operator.h"

#include "kernel_fuzz/check.h"
#include "kernel_fuzz/seeds.h"

namespace tessera::testing {
namespace {

constexpr double kSeconds = 10;

TEST(KernelFuzz, EveryKernelOfTheCpuComputesWhatTheReferenceDoes) {
  const std::shared_ptr<Device> device = Device::cpu();
  for_each_problem(*device, kSeconds, [&](const KernelProblem& problem) { check_kernels(device, problem); });
}

TEST(KernelFuzz, MakesProblemsOfEveryOperator) {
  std::set<std::string> known;
  for (const std::string& name : drawn_operators()) known.insert(name);
  for (const OperatorSchema* schema : OperatorRegistry::instance().all())
    EXPECT_TRUE(known.contains(schema->name)) << schema->name;
}

TEST(KernelFuzz, TheSameSeedGivesTheSameProblems) {
  const std::shared_ptr<Device> device = Device::cpu();
  for (const uint64_t seed : {5, 6, 7, 8}) {
    const std::vector<KernelProblem> once = draw_problems(seed, *device);
    const std::vector<KernelProblem> again = draw_problems(seed, *device);
    ASSERT_EQ(once.size(), again.size());
    for (size_t i = 0; i < once.size(); ++i) {
      EXPECT_EQ(once[i].description(), again[i].description());
      for (size_t j = 0; j < once[i].inputs.size(); ++j)
        EXPECT_TRUE(once[i].inputs[j].identical(again[i].inputs[j]));
    }
  }
}

}  // namespace
}  // namespace tessera::testing
