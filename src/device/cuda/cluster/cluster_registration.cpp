// Clusters as generated kernels.
#include "tessera/device/common/cluster_body.h"

#include "device/cuda/cluster/cluster_source.h"
#include "device/cuda/kernel_registry.h"

namespace tessera::cuda {
namespace {

std::vector<KernelCandidate> candidates(const Node&, Context& context) {
  const auto program = [](const KernelRequest& request, const GpuTraits& gpu) {
    return print_cluster(*backend::cluster_body(request.node), gpu);
  };
  return {generated_candidate("cluster", context, program)};
}

bool register_clusters() {
  for (const std::string& key : backend::cluster_keys())
    CudaKernelRegistration({.key = key, .candidates = candidates});
  return true;
}

[[maybe_unused]] const bool kRegistered = register_clusters();

}  // namespace
}  // namespace tessera::cuda
