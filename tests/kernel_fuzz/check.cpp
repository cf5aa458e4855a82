#include "kernel_fuzz/check.h"

#include <algorithm>
#include <cmath>

#include <gtest/gtest.h>
#include <omp.h>

#include "kernel_fuzz/errors.h"
#include "support/every_kernel.h"

namespace tessera::testing {
namespace {

bool all_finite(const Tensor& tensor) {
  if (!is_floating(tensor.data_type())) return true;
  const std::vector<double> values = tensor.to_doubles();
  return std::all_of(values.begin(), values.end(), [](double value) { return std::isfinite(value); });
}

// `may_spread`: of a kernel that computes in another way than by the plain sums. What is not finite spreads
// to its neighbours there; it may not get lost.
::testing::AssertionResult is_expected(const Tensor& actual, const ExpectedOutput& expected,
                                       double amplification, bool may_spread) {
  int64_t wrong = 0;
  int64_t place = -1;
  double worst = 1;
  for (int64_t i = 0; i < actual.size(); ++i) {
    const double value = expected.values[static_cast<size_t>(i)];
    const double allowed = expected.allowed[static_cast<size_t>(i)] * amplification;
    if (std::isinf(allowed) || (may_spread && !std::isfinite(actual.at(i)))) continue;
    const double ratio = excess(actual.at(i), value, {.absolute = allowed});
    if (ratio <= 1) continue;
    ++wrong;
    if (ratio > worst || place < 0) place = i;
    worst = std::max(worst, ratio);
  }
  if (wrong == 0) return ::testing::AssertionSuccess();
  const auto at = static_cast<size_t>(place);
  return ::testing::AssertionFailure() << fmt::format(
             "{} of {} elements of {}{} are off; the worst at {}: {:.9g}, expected {:.9g}, of which it may "
             "be "
             "off by {:.3g}",
             wrong, actual.size(), to_string(actual.data_type()), to_string(actual.shape()),
             index_text(place, actual.shape()), actual.at(place), expected.values[at],
             expected.allowed[at] * amplification);
}

}  // namespace

std::vector<ExpectedOutput> expected_outputs(const KernelProblem& problem) {
  std::vector<const Tensor*> inputs;
  for (const Tensor& input : problem.inputs) inputs.push_back(&input);
  Outcome outcome = run_with_errors(*problem.node, inputs, problem.tf32);
  std::vector<ExpectedOutput> result;
  for (size_t i = 0; i < outcome.outputs.size(); ++i)
    result.push_back({outcome.outputs[i].to_doubles(), std::move(outcome.errors[i])});
  return result;
}

void check_kernels(const std::shared_ptr<Device>& device, const KernelProblem& problem) {
  const std::vector<ExpectedOutput> expected = expected_outputs(problem);
  const bool finite = std::all_of(problem.inputs.begin(), problem.inputs.end(), all_finite);
  const KernelRequest request = problem.request();
  const int threads = omp_get_max_threads();
  omp_set_num_threads(problem.threads);
  for (const KernelCandidate& candidate : device->candidates(*problem.node)) {
    if (candidate.name == "reference" || !candidate.refusal(request).empty()) continue;
    run_candidate(
        *device, candidate, request, problem.inputs, candidate.name + " for " + problem.description(),
        [&](const std::vector<Tensor>& actual, const std::string& context) {
          const bool may_spread = !finite && candidate.rounding_amplification > 1;
          for (size_t i = 0; i < actual.size(); ++i)
            EXPECT_TRUE(is_expected(actual[i], expected[i], candidate.rounding_amplification, may_spread))
                << context << ", output " << i;
        });
  }
  omp_set_num_threads(threads);
}

}  // namespace tessera::testing
