// layer_norm, group_norm and their gradients as graphs of clusters.
#include "tessera/device/common/normalization_rules.h"

#include "device/cpu/kernel_registry.h"

namespace tessera::cpu {
namespace {

bool register_rules() {
  for (const auto& [key, rule] : backend::normalization_rules()) {
    CpuKernelRegistration({.key = key,
                           .candidates =
                               [key = key, rule = rule](const Node&) {
                                 return std::vector{
                                     backend::rule_candidate("loops." + key, rule, cpu_candidates)};
                               },
                           .expansion = [rule = rule](const Node&) { return rule; }});
  }
  return true;
}

[[maybe_unused]] const bool kRegistered = register_rules();

}  // namespace
}  // namespace tessera::cpu
