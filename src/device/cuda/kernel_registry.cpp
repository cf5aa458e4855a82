#include "device/cuda/kernel_registry.h"

#include "tessera/compile/reference_kernel.h"

#include "device/cuda/expanded.h"

namespace tessera::cuda {
namespace {

backend::KernelTable<CudaKernels>& table() {
  static backend::KernelTable<CudaKernels> kernels;
  return kernels;
}

}  // namespace

CudaKernelRegistration::CudaKernelRegistration(CudaKernels kernels) {
  table().add(std::move(kernels));
}

void check_kernels(const std::vector<FusionPattern>& patterns) {
  table().check(patterns);
}

const CudaKernels* find_kernels(const std::string& key) {
  return table().find(key);
}

std::vector<KernelCandidate> cuda_candidates(const Node& node, Context& context) {
  std::vector<KernelCandidate> result;
  if (const CudaKernels* kernels = find_kernels(backend::kernel_key(node))) {
    result = kernels->candidates(node, context);
  }
  const bool expands = node.body() != nullptr || has_rule(node);
  if (expands) result.push_back(expanded_candidate(node, context));
  if (backend::makes_nothing(node)) result.push_back(backend::nothing_candidate());
  // So that every graph runs: the nodes of what is expanded come here, too.
  if (!expands) result.push_back(host_reference_candidate());
  return result;
}

}  // namespace tessera::cuda
