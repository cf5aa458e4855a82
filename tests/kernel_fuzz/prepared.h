// The problems of the next seeds, made beside those that run: what the reference computes and what compilers
// make of them takes longer than the GPU does.
#pragma once

#include <future>
#include <map>
#include <memory>
#include <vector>

#include "tessera/base/background_work.h"

#include "kernel_fuzz/block_problems.h"
#include "kernel_fuzz/check.h"

namespace tessera::testing {

struct PreparedSeed {
  std::vector<KernelProblem> problems;
  std::vector<std::vector<ExpectedOutput>> expected;  // of each problem
  std::vector<std::unique_ptr<Kernel>> kernels;       // so that their modules stay with the device
};

// Whether the fuzzer runs it. Of the many plans of cuDNN for one problem beside the first one other is, and
// of weight gradients in 16 bits the first alone: some of the others round partial sums
// (docs/cuda/convolution.md).
bool is_tried(const KernelProblem& problem, const KernelCandidate& candidate);

class PreparedSeeds {
 public:
  // `device`: where kernels will run; `eager`: of the same card, whose passes make the problems.
  PreparedSeeds(std::shared_ptr<Device> device, const EagerDevice& eager);

  // Begins the seeds after this one, and waits for it. Throws what making it threw.
  std::shared_ptr<PreparedSeed> get(uint64_t seed);

 private:
  std::shared_ptr<PreparedSeed> prepare(uint64_t seed) const;

  std::shared_ptr<Device> device_;
  const EagerDevice& eager_;
  uint64_t begun_ = 0;  // up to this seed, from the first that was asked for
  std::map<uint64_t, std::future<std::shared_ptr<PreparedSeed>>> waiting_;
  BackgroundWork work_;
};

}  // namespace tessera::testing
