// Which operators the cluster engine offers to run: every elementwise one, whatever operators there are.
#include "tessera/graph/operator.h"

#include "device/cpu/cluster_kernel.h"
#include "device/cpu/kernel_registry.h"

namespace tessera::cpu {
namespace {

std::vector<KernelCandidate> candidates(const Node& node) {
  return {cluster_candidate()};
}

bool register_clusters() {
  std::vector<std::string> keys = {"fused:cluster", "random_uniform", "dropout",
                                   "broadcast_to",  "reduce_sum",     "reduce_mean",
                                   "reduce_max",    "reduce_min",     "reduce_product"};
  for (const OperatorSchema* schema : OperatorRegistry::instance().all()) {
    if (schema->operator_class == OperatorClass::elementwise) keys.push_back(schema->name);
  }
  for (const std::string& key : keys) CpuKernelRegistration({.key = key, .candidates = candidates});
  return true;
}

[[maybe_unused]] const bool kRegistered = register_clusters();

}  // namespace
}  // namespace tessera::cpu
