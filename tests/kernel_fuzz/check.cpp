#include "kernel_fuzz/check.h"

#include <algorithm>
#include <cmath>

#include <gtest/gtest.h>
#include <omp.h>

#include "kernel_fuzz/errors.h"
#include "kernel_fuzz/seeds.h"
#include "support/every_kernel.h"

namespace tessera::testing {
namespace {

bool all_finite(const Tensor& tensor) {
  if (!is_floating(tensor.data_type())) return true;
  const std::vector<double> values = tensor.to_doubles();
  return std::all_of(values.begin(), values.end(), [](double value) { return std::isfinite(value); });
}

// The library's statistics of a row that holds NaN: an inverse deviation of 0. The row itself becomes NaN.
constexpr std::string_view kGivesZeroDeviations = "cudnn.layer_norm";

// What a kernel may make of inputs that are not finite.
enum class NonFinite {
  same,     // what the reference makes
  either,   // NaN in place of an infinity, or the other way round, where its formula is another
  spreads,  // and of neighbors too, with which it sums them and takes them away again
};

bool forgiven(double actual, double expected, NonFinite rule) {
  if (rule == NonFinite::same || std::isfinite(actual)) return false;
  return rule == NonFinite::spreads || !std::isfinite(expected);
}

bool holds_convolution(const Node& node) {
  if (node.operator_name().find("convolution") != std::string::npos) return true;
  return node.body() != nullptr && std::any_of(node.body()->nodes().begin(), node.body()->nodes().end(),
                                               [](const auto& inner) { return holds_convolution(*inner); });
}

bool hides_keys(const Node& node) {
  const std::string& name = node.operator_name();
  if (name.find("attention") == std::string::npos) return false;
  const bool gradient = name.ends_with("gradient");
  const size_t others = (gradient ? 6 : 3) + (node.attributes().contains("rate") ? 1 : 0);
  return node.attributes().boolean("causal") || node.inputs().size() > others;  // with a bias or lengths
}

// Of a kernel that runs a body node by node that of the worst of those inside.
double amplification_of(const Device& device, const KernelProblem& problem,
                        const KernelCandidate& candidate) {
  double result = candidate.rounding_amplification;
  if (candidate.name != "unfused") return result;
  for (const auto& inner : problem.node->body()->nodes()) {
    for (const KernelCandidate& one : device.candidates(*inner))
      result = std::max(result, one.rounding_amplification);
  }
  return result;
}

NonFinite rule_for(const KernelProblem& problem, double amplification) {
  const Node& node = *problem.node;
  const bool plain = std::all_of(problem.inputs.begin(), problem.inputs.end(), all_finite);
  if (plain) return NonFinite::same;
  if (amplification > 1) return NonFinite::spreads;
  // Padding, and what strides leave out, is zeros, which kernels may multiply by what is not finite.
  if (holds_convolution(node)) return NonFinite::spreads;
  // What a query does not see has the weight zero.
  if (hides_keys(node)) return NonFinite::spreads;
  switch (node.schema().operator_class) {
    case OperatorClass::contraction:
    case OperatorClass::normalization:
    case OperatorClass::loss:
    case OperatorClass::fused:
      return NonFinite::either;
    default:
      return NonFinite::same;
  }
}

::testing::AssertionResult is_expected(const Tensor& actual, const ExpectedOutput& expected,
                                       double amplification, NonFinite rule) {
  int64_t wrong = 0;
  int64_t place = -1;
  double worst = 1;
  for (int64_t i = 0; i < actual.size(); ++i) {
    const double value = expected.values[static_cast<size_t>(i)];
    const double allowed = expected.allowed[static_cast<size_t>(i)] * amplification;
    if (std::isinf(allowed) || forgiven(actual.at(i), value, rule)) continue;
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
  check_kernels(device, problem, expected_outputs(problem));
}

void check_kernels(const std::shared_ptr<Device>& device, const KernelProblem& problem,
                   const std::vector<ExpectedOutput>& expected, const TakesCandidate& takes) {
  const KernelRequest request = problem.request();
  const int threads = omp_get_max_threads();
  omp_set_num_threads(problem.threads);
  for (const KernelCandidate& candidate : device->candidates(*problem.node)) {
    if (candidate.name.starts_with("reference") || (takes && !takes(candidate))) continue;
    if (!candidate.refusal(request).empty()) continue;
    const double amplification = amplification_of(*device, problem, candidate);
    const NonFinite rule = rule_for(problem, amplification);
    const std::string context = candidate.name + " for " + problem.description();
    announce(context);
    run_candidate(*device, candidate, request, problem.inputs, context,
                  [&](const std::vector<Tensor>& actual, const std::string& where) {
                    for (size_t i = 0; i < actual.size(); ++i) {
                      if (i > 0 && rule != NonFinite::same && candidate.name == kGivesZeroDeviations)
                        continue;
                      EXPECT_TRUE(is_expected(actual[i], expected[i], amplification, rule))
                          << where << ", output " << i;
                    }
                  });
  }
  omp_set_num_threads(threads);
}

}  // namespace tessera::testing
