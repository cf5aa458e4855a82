#include "device/cuda/kernel_registry.h"

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

const CudaKernels* find_kernels(const std::string& key) {
  return table().find(key);
}

std::vector<KernelCandidate> cuda_candidates(const Node& node, Context& context) {
  std::vector<KernelCandidate> result;
  if (const CudaKernels* kernels = find_kernels(backend::kernel_key(node))) {
    result = kernels->candidates(node, context);
  }
  if (node.body() != nullptr || has_rule(node)) result.push_back(expanded_candidate(node, context));
  if (backend::makes_nothing(node)) result.push_back(backend::nothing_candidate());
  return result;
}

}  // namespace tessera::cuda
