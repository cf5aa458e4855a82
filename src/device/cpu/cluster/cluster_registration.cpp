// What the cluster engine offers to run.
#include "tessera/device/common/cluster_body.h"

#include "device/cpu/cluster/cluster_kernel.h"
#include "device/cpu/kernel_registry.h"

namespace tessera::cpu {
namespace {

std::vector<KernelCandidate> candidates(const Node& node) {
  return {cluster_candidate()};
}

bool register_clusters() {
  for (const std::string& key : backend::cluster_keys())
    CpuKernelRegistration({.key = key, .candidates = candidates});
  return true;
}

[[maybe_unused]] const bool kRegistered = register_clusters();

}  // namespace
}  // namespace tessera::cpu
