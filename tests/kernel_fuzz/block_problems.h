// Networks of few layers with as many channels as the GPU's own kernels want, or nearly as many: parts of
// residual networks forward and backward, which random extents would seldom make.
#pragma once

#include <cstdint>
#include <vector>

#include "device/cuda/device.h"
#include "kernel_fuzz/problem.h"

namespace tessera::testing {

// A card whose passes fuse whatever they know how to, also where it does not pay: tensors that do not fit the
// caches would take the reference minutes. What its kernels do not take they refuse.
class EagerDevice : public cuda::CudaDevice {
 public:
  using CudaDevice::CudaDevice;
  PassTarget pass_target(const PassOptions& options) const override;
};

// Of half of the seeds those of draw_problems(), of the others every fused node of such a network, and some
// of the other nodes.
std::vector<KernelProblem> draw_cuda_problems(uint64_t seed, const EagerDevice& device);

}  // namespace tessera::testing
