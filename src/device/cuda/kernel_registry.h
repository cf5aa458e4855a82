// Which kernels the GPU has for which operator: filled by the files of this folder, read by the device.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "tessera/device/common/kernel_table.h"

#include "device/cuda/runtime/context.h"

namespace tessera::cuda {

struct CudaKernels {
  // The name of an operator, or "fused:KIND" for a fused node of that kind.
  std::string key;
  // From the one to prefer unmeasured to the one that takes most. Planned, and their kernels made, by several
  // threads at a time.
  std::function<std::vector<KernelCandidate>(const Node& node, Context& context)> candidates;
  // True when timing the candidates pays.
  bool tunable = false;
};

// Registers before main(): static const CudaKernelRegistration kMatmul({.key = "matmul", ...});
// One key may be registered once.
struct CudaKernelRegistration {
  explicit CudaKernelRegistration(CudaKernels kernels);
};

// KernelTable::check() of all that is registered.
void check_kernels(const std::vector<FusionPattern>& patterns);

// The kernels of a key, or null.
const CudaKernels* find_kernels(const std::string& key);

// All candidates of a node; a fused node that no kernel of its kind takes runs its body.
std::vector<KernelCandidate> cuda_candidates(const Node& node, Context& context);

}  // namespace tessera::cuda
