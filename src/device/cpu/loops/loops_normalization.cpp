// layer_norm, group_norm and their gradients as graphs of clusters; layer_norm over the last axis in one
// kernel.
#include "tessera/device/common/normalization_rules.h"

#include "device/cpu/kernel_registry.h"
#include "device/cpu/normalization/residual_layer_norm.h"

namespace tessera::cpu {
namespace {

std::vector<KernelCandidate> candidates(const std::string& key, const GraphRule& rule) {
  std::vector<KernelCandidate> result{backend::rule_candidate("loops." + key, rule, cpu_candidates)};
  if (key == "layer_norm") result.insert(result.begin(), layer_norm_candidate("loops.layer_norm_rows"));
  return result;
}

bool register_rules() {
  for (const auto& [key, rule] : backend::normalization_rules()) {
    CpuKernelRegistration(
        {.key = key,
         .candidates = [key = key, rule = rule](const Node&) { return candidates(key, rule); },
         .expansion =
             [key = key, rule = rule](const Node& node) {
               const bool has_kernel = key == "layer_norm" && has_layer_norm_kernel(node);
               return has_kernel ? GraphRule() : rule;
             }});
  }
  return true;
}

[[maybe_unused]] const bool kRegistered = register_rules();

}  // namespace
}  // namespace tessera::cpu
