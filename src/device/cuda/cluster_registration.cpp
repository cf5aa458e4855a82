// Which operators are clusters: every elementwise one, whatever operators there are, dropout and reductions.
#include "tessera/device/common/cluster_body.h"
#include "tessera/graph/operator.h"

#include "device/cuda/cluster_source.h"
#include "device/cuda/kernel_registry.h"

namespace tessera::cuda {
namespace {

std::vector<KernelCandidate> candidates(const Node&, Context& context) {
  const auto program = [&context](const KernelRequest& request) {
    return print_cluster(*backend::cluster_body(request.node), context.traits());
  };
  return {backend::checked_candidate(
      "generated.cluster", [program](const KernelRequest& request) { program(request); },
      [program, &context](const KernelRequest& request) {
        return make_generated_kernel(context, program(request));
      })};
}

bool register_clusters() {
  std::vector<std::string> keys = {"fused:cluster", "random_uniform", "dropout",
                                   "broadcast_to",  "reduce_sum",     "reduce_mean",
                                   "reduce_max",    "reduce_min",     "reduce_product"};
  for (const OperatorSchema* schema : OperatorRegistry::instance().all()) {
    if (schema->operator_class == OperatorClass::elementwise) keys.push_back(schema->name);
  }
  for (const std::string& key : keys) CudaKernelRegistration({.key = key, .candidates = candidates});
  return true;
}

[[maybe_unused]] const bool kRegistered = register_clusters();

}  // namespace
}  // namespace tessera::cuda
