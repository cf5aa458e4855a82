// Random problems for the kernels of a GPU: on a card that is there they compute what the reference does; for
// cards that are only planned for, the text of every willing kernel compiles.
#include <cstdlib>
#include <iostream>

#include <gtest/gtest.h>

#include "tessera/base/error.h"

#include "device_cuda/text_compiler.h"
#include "kernel_fuzz/block_problems.h"
#include "kernel_fuzz/prepared.h"
#include "kernel_fuzz/seeds.h"
#include "support/gpu.h"

namespace tessera::testing {
namespace {

// Thousands of problems that no other process will have.
void keep_nothing_on_disk() {
  setenv("TESSERA_CUDA_CACHE", "", 1);
}

// False where a kernel has left the GPU in a state in which nothing runs any more.
bool still_works(Device& device) {
  try {
    device.allocate(1024);  // which is filled and waited for
    return true;
  } catch (const Error& error) {
    std::cout << "the GPU takes no more work, so that the run ends here: " << error.what() << "\n";
    return false;
  }
}

TEST(CudaKernelFuzz, EveryKernelComputesWhatTheReferenceDoes) {
  constexpr double kSeconds = 60;
  constexpr int kMostFailures = 20;  // seeds
  keep_nothing_on_disk();
  const auto device = opened_or_null([] { return std::make_shared<EagerDevice>(""); });
  // Runs with all tests on machines without one; `./test --gpu` refuses to start there.
  if (device == nullptr) GTEST_SKIP() << "no GPU";
  PreparedSeeds seeds(device, *device);
  int failures = 0;
  for_each_seed(
      kSeconds,
      [&](uint64_t seed) {
        const std::shared_ptr<PreparedSeed> own = seeds.get(seed);
        for (size_t i = 0; i < own->problems.size(); ++i) {
          const KernelProblem& problem = own->problems[i];
          check_kernels(device, problem, own->expected[i],
                        [&](const KernelCandidate& candidate) { return is_tried(problem, candidate); });
        }
        return static_cast<int64_t>(own->problems.size());
      },
      [&] { return still_works(*device) && ++failures < kMostFailures; });
}

TEST(CudaKernelFuzz, TextOfEveryKernelCompilesForCardsThatAreNotThere) {
  constexpr double kSeconds = 10;
  constexpr int kMostFailures = 20;  // seeds
  const EagerDevice h100("plan-h100"), a100("plan-a100"), b200("plan-b200");
  TextCompiler compiler;
  const auto check = [&](const EagerDevice& card, const KernelProblem& problem) {
    const KernelRequest request = problem.request();
    for (const KernelCandidate& candidate : card.candidates(*problem.node)) {
      if (!candidate.refusal(request).empty()) continue;
      const std::string where = candidate.name + " for " + problem.description();
      announce(where);
      const std::unique_ptr<Kernel> kernel = candidate.create(request);
      for (const std::string& source : card.context().modules().sources())
        EXPECT_EQ(compiler.check(source, card.context().traits().architecture), "") << where;
    }
  };
  int failures = 0;
  for_each_seed(
      kSeconds,
      [&](uint64_t seed) {
        const EagerDevice& card = seed % 8 == 5 ? a100 : seed % 8 == 6 ? b200 : h100;
        const std::vector<KernelProblem> problems = draw_cuda_problems(seed, card);
        for (const KernelProblem& problem : problems) check(card, problem);
        return static_cast<int64_t>(problems.size());
      },
      [&] { return ++failures < kMostFailures; });
  std::cout << compiler.compiled() << " texts\n";
}

}  // namespace
}  // namespace tessera::testing
