#include "compile/kernel_choice.h"

#include <algorithm>
#include <unordered_set>

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

// An output that is an input, or another output too, is a copy that the kernel makes.
bool makes_each_output(const Graph& graph) {
  std::unordered_set<const Value*> seen;
  return std::all_of(graph.outputs().begin(), graph.outputs().end(), [&](const Graph::Output& output) {
    return output.value->producer() != nullptr && seen.insert(output.value).second;
  });
}

std::shared_ptr<const Graph> graph_to_place(const KernelCandidate& candidate, const KernelRequest& request) {
  if (!candidate.graph) return nullptr;
  std::shared_ptr<const Graph> graph =
      naming_kernel(candidate.name, request.node, [&] { return candidate.graph(request); });
  return makes_each_output(*graph) ? graph : nullptr;
}

}  // namespace

ChosenKernel choose_kernel(const KernelQuestion& question, size_t place, CandidatesAhead& ahead,
                           Device& device) {
  const auto begin = Clock::now();
  const KernelRequest& request = question.request;
  const Node& node = request.node;
  ChosenKernel choice;
  NodeReport& report = choice.report;
  report.name = node.name();
  report.operator_name = operator_name_with_kind(node);
  const Cost cost = cost_of(node);
  report.flops = cost.flops;
  report.bytes = cost.bytes;
  report.arithmetic = arithmetic_of(request);

  const PlannedNode planned = ahead.take(place);
  report.candidates = planned.reports;
  if (planned.willing.empty()) {
    std::string refusals;
    for (const CandidateReport& candidate : report.candidates) {
      refusals += fmt::format("\n  {}: {}", candidate.name, candidate.refused);
    }
    fail(ErrorCode::unsupported, "device '{}' has no kernel for {}{}", device.description().name, print(node),
         refusals);
  }
  const WillingCandidate* winner = &planned.willing.front();
  if (question.tuner != nullptr && planned.willing.size() > 1) {
    if (question.tuner->measures(request, planned.willing)) ahead.wait_for_kernels();
    const TuningResult result = question.tuner->choose(request, planned.willing);
    for (CandidateReport& candidate : report.candidates) {
      const auto time = result.microseconds.find(candidate.name);
      if (time != result.microseconds.end()) candidate.microseconds = time->second;
    }
    for (const WillingCandidate& one : planned.willing) {
      if (one.name() == result.winner) winner = &one;
    }
  }
  report.kernel = winner->name();
  if (device.executes() || device.plans_kernels()) {
    if (question.expands) choice.graph = graph_to_place(*winner->candidate, request);
    if (choice.graph == nullptr) choice.kernel = naming_kernel(winner->name(), node, winner->make);
  }
  report.choice = {begin, Clock::now()};
  return choice;
}

}  // namespace tessera
