#include "compile/kernel_choice.h"

#include "tessera/base/error.h"
#include "tessera/graph/operator.h"

namespace tessera {

ChosenKernel choose_kernel(const KernelRequest& request, Device& device, Tuner* tuner) {
  const auto begin = Clock::now();
  const Node& node = request.node;
  ChosenKernel choice;
  NodeReport& report = choice.report;
  report.name = node.name();
  report.operator_name = node.operator_name();
  if (node.body() != nullptr) report.operator_name += ":" + node.attributes().text("kind");
  const Cost cost = cost_of(node);
  report.flops = cost.flops;
  report.bytes = cost.bytes;

  const std::vector<KernelCandidate> all = device.candidates(node);
  std::vector<const KernelCandidate*> willing;
  for (const KernelCandidate& candidate : all) {
    const std::string refusal = candidate.refusal(request);
    report.candidates.push_back({candidate.name, refusal, -1});
    if (refusal.empty()) willing.push_back(&candidate);
  }
  if (willing.empty()) {
    std::string refusals;
    for (const CandidateReport& candidate : report.candidates) {
      refusals += fmt::format("\n  {}: {}", candidate.name, candidate.refused);
    }
    fail(ErrorCode::unsupported, "device '{}' has no kernel for {}{}", device.description().name, print(node),
         refusals);
  }
  const KernelCandidate* winner = willing.front();
  if (tuner != nullptr && willing.size() > 1 && device.worth_tuning(node)) {
    const TuningResult result = tuner->choose(request, willing);
    for (CandidateReport& candidate : report.candidates) {
      const auto time = result.microseconds.find(candidate.name);
      if (time != result.microseconds.end()) candidate.microseconds = time->second;
    }
    for (const KernelCandidate* candidate : willing) {
      if (candidate->name == result.winner) winner = candidate;
    }
  }
  report.kernel = winner->name;
  if (device.executes() || device.plans_kernels()) choice.kernel = winner->create(request);
  report.choice = {begin, Clock::now()};
  return choice;
}

}  // namespace tessera
