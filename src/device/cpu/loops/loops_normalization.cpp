// layer_norm, group_norm and their gradients as graphs of clusters; layer_norm over the last axis in one
// kernel.
#include "tessera/device/common/normalization_rules.h"

#include "device/cpu/kernel_registry.h"
#include "device/cpu/normalization/residual_layer_norm.h"

namespace tessera::cpu {
namespace {

bool register_rules() {
  for (const auto& [key, rule] : backend::normalization_rules()) {
    std::vector<KernelCandidate> candidates{backend::rule_candidate("loops." + key, rule, cpu_candidates)};
    const bool has_kernel = key == "layer_norm";
    if (has_kernel) candidates.insert(candidates.begin(), layer_norm_candidate("loops.layer_norm_rows"));
    CpuKernelRegistration({.key = key,
                           .candidates = [candidates](const Node&) { return candidates; },
                           .expansion =
                               [has_kernel, rule = rule](const Node& node) {
                                 return has_kernel && has_layer_norm_kernel(node) ? GraphRule() : rule;
                               }});
  }
  return true;
}

[[maybe_unused]] const bool kRegistered = register_rules();

}  // namespace
}  // namespace tessera::cpu
