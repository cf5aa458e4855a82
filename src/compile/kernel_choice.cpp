#include "compile/kernel_choice.h"

#include <algorithm>

#include "tessera/base/error.h"
#include "tessera/graph/operator.h"

#include "compile/kernel_failure.h"

namespace tessera {
namespace {

// The matrix product or convolution that the node is or was fused from; null for other work.
const Node* find_contraction(const Node& node) {
  if (node.schema().operator_class == OperatorClass::contraction) return &node;
  if (node.body() == nullptr) return nullptr;
  for (const auto& inner : node.body()->nodes()) {
    if (const Node* found = find_contraction(*inner)) return found;
  }
  return nullptr;
}

// Products are made in the type of their operands. All else computes in fp32, whatever it reads and writes.
std::optional<Precision> arithmetic_of(const KernelRequest& request) {
  const Node* contraction = find_contraction(request.node);
  const bool is_product = contraction != nullptr;
  switch ((is_product ? contraction->input(0) : request.node.output())->data_type()) {
    case DataType::fp64:
      return std::nullopt;
    case DataType::fp16:
      return is_product ? Precision::fp16 : Precision::fp32;
    case DataType::bf16:
      return is_product ? Precision::bf16 : Precision::fp32;
    default:
      return is_product && request.tf32 ? Precision::tf32 : Precision::fp32;
  }
}

}  // namespace

ChosenKernel choose_kernel(const KernelRequest& request, Device& device, Tuner* tuner) {
  const auto begin = Clock::now();
  const Node& node = request.node;
  ChosenKernel choice;
  NodeReport& report = choice.report;
  report.name = node.name();
  report.operator_name = operator_name_with_kind(node);
  const Cost cost = cost_of(node);
  report.flops = cost.flops;
  report.bytes = cost.bytes;
  report.arithmetic = arithmetic_of(request);

  const bool tuned = tuner != nullptr && device.tunable(node);
  const std::vector<KernelCandidate> all = device.candidates(node);
  std::vector<WillingCandidate> willing;
  for (const KernelCandidate& candidate : all) {
    if (candidate.only_tuned && !tuned) continue;
    auto planned = naming_kernel(candidate.name, node, [&] { return candidate.plan(request); });
    const auto* refusal = std::get_if<Refusal>(&planned);
    report.candidates.push_back({candidate.name, refusal != nullptr ? refusal->reason : "", -1});
    if (refusal == nullptr) willing.push_back({&candidate, std::get<KernelMaker>(std::move(planned))});
  }
  if (willing.empty()) {
    std::string refusals;
    for (const CandidateReport& candidate : report.candidates) {
      refusals += fmt::format("\n  {}: {}", candidate.name, candidate.refused);
    }
    fail(ErrorCode::unsupported, "device '{}' has no kernel for {}{}", device.description().name, print(node),
         refusals);
  }
  const auto is_fallback = [](const WillingCandidate& one) { return one.candidate->fallback; };
  if (std::all_of(willing.begin(), willing.end(), is_fallback)) {
    willing.resize(1);
  } else {
    std::erase_if(willing, is_fallback);
  }
  std::stable_partition(willing.begin(), willing.end(),
                        [](const WillingCandidate& one) { return !one.candidate->only_tuned; });
  const WillingCandidate* winner = &willing.front();
  if (tuned && willing.size() > 1) {
    const TuningResult result = tuner->choose(request, willing);
    for (CandidateReport& candidate : report.candidates) {
      const auto time = result.microseconds.find(candidate.name);
      if (time != result.microseconds.end()) candidate.microseconds = time->second;
    }
    for (const WillingCandidate& one : willing) {
      if (one.name() == result.winner) winner = &one;
    }
  }
  report.kernel = winner->name();
  if (device.executes() || device.plans_kernels())
    choice.kernel = naming_kernel(winner->name(), node, winner->make);
  report.choice = {begin, Clock::now()};
  return choice;
}

}  // namespace tessera
