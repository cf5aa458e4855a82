// One problem on every kernel that is willing to take it, beside the reference.
#pragma once

#include <functional>
#include <memory>
#include <vector>

#include "kernel_fuzz/problem.h"

namespace tessera::testing {

// What one output must be: `values`, each within its own of `allowed`.
struct ExpectedOutput {
  std::vector<double> values;
  std::vector<double> allowed;
};

// By the operator's own reference loop; of a fused node by that of each operator in its body.
std::vector<ExpectedOutput> expected_outputs(const KernelProblem& problem);

using TakesCandidate = std::function<bool(const KernelCandidate& candidate)>;

// Runs every willing candidate of the device, or those that `takes` takes, between guard bands and compares
// what it makes with what is expected; bits, where the request is deterministic, from run to run. Adds a
// failure of the test for each difference, with the problem and the candidate.
void check_kernels(const std::shared_ptr<Device>& device, const KernelProblem& problem,
                   const std::vector<ExpectedOutput>& expected, const TakesCandidate& takes = nullptr);
void check_kernels(const std::shared_ptr<Device>& device, const KernelProblem& problem);

}  // namespace tessera::testing
