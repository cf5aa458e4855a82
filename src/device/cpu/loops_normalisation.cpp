// layer_norm, group_norm, attention and their gradients as graphs of clusters and products.
#include "tessera/device/common/attention_rules.h"
#include "tessera/device/common/normalisation_rules.h"

#include "device/cpu/kernel_registry.h"

namespace tessera::cpu {
namespace {

bool register_rules() {
  for (const auto* rules : {&backend::normalisation_rules(), &backend::attention_rules()}) {
    for (const auto& [key, rule] : *rules) {
      CpuKernelRegistration({.key = key, .candidates = [key = key, rule = rule](const Node&) {
                               return std::vector{
                                   backend::rule_candidate("loops." + key, rule, cpu_candidates)};
                             }});
    }
  }
  return true;
}

[[maybe_unused]] const bool kRegistered = register_rules();

}  // namespace
}  // namespace tessera::cpu
