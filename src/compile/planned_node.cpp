#include "compile/planned_node.h"

#include <algorithm>
#include <utility>

#include "tessera/graph/operator.h"

#include "compile/communication_kernel.h"
#include "compile/kernel_failure.h"

namespace tessera {

PlannedNode plan_candidates(const KernelRequest& request, const Device& device, bool tuned,
                            const std::string* kernel) {
  PlannedNode node;
  const bool communicates = request.node.schema().operator_class == OperatorClass::communication;
  node.candidates = communicates ? communication_candidates(device) : device.candidates(request.node);
  if (kernel != nullptr) {
    std::erase_if(node.candidates, [&](const KernelCandidate& one) { return one.name != *kernel; });
    if (node.candidates.empty()) node.reports.push_back({*kernel, "no candidate has that name", -1});
  }
  std::vector<WillingCandidate>& willing = node.willing;
  for (const KernelCandidate& candidate : node.candidates) {
    if (candidate.only_tuned && !tuned && kernel == nullptr) continue;
    auto planned = naming_kernel(candidate.name, request.node, [&] { return candidate.plan(request); });
    const auto* refusal = std::get_if<Refusal>(&planned);
    node.reports.push_back({candidate.name, refusal != nullptr ? refusal->reason : "", -1});
    if (refusal == nullptr) willing.push_back({&candidate, std::get<KernelMaker>(std::move(planned))});
  }
  const auto is_fallback = [](const WillingCandidate& one) { return one.candidate->fallback; };
  if (!std::all_of(willing.begin(), willing.end(), is_fallback)) {
    std::erase_if(willing, is_fallback);
  } else if (!willing.empty()) {
    willing.resize(1);
  }
  std::stable_partition(willing.begin(), willing.end(),
                        [](const WillingCandidate& one) { return !one.candidate->only_tuned; });
  return node;
}

}  // namespace tessera
