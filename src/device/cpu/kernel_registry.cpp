#include "device/cpu/kernel_registry.h"

#include "tessera/compile/reference_kernel.h"
#include "tessera/device/common/subgraph_kernel.h"

namespace tessera::cpu {
namespace {

backend::KernelTable<CpuKernels>& table() {
  static backend::KernelTable<CpuKernels> kernels;
  return kernels;
}

}  // namespace

CpuKernelRegistration::CpuKernelRegistration(CpuKernels kernels) {
  table().add(std::move(kernels));
}

void check_kernels(const std::vector<FusionPattern>& patterns) {
  table().check(patterns);
}

const CpuKernels* find_kernels(const std::string& key) {
  return table().find(key);
}

GraphRule expansion_of(const Node& node) {
  const CpuKernels* kernels = find_kernels(kernel_key(node));
  return kernels != nullptr && kernels->expansion ? kernels->expansion(node) : GraphRule();
}

std::vector<KernelCandidate> cpu_candidates(const Node& node) {
  std::vector<KernelCandidate> result;
  if (const CpuKernels* kernels = find_kernels(kernel_key(node))) result = kernels->candidates(node);
  if (node.body() != nullptr) result.push_back(backend::unfused_candidate(cpu_candidates));
  result.push_back(reference_candidate());
  return result;
}

}  // namespace tessera::cpu
