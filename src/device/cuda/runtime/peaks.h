// What a GPU's multiprocessors can compute at best.
#pragma once

#include <map>

#include "tessera/passes/pass.h"

#include "device/cuda/runtime/context.h"

namespace tessera::cuda {

// Dense flops per second: of the tensor cores for tf32, fp16 and bf16, of the ordinary ones for fp32. Empty
// for architectures whose rates are not known here.
std::map<Precision, double> flops_per_second(const GpuTraits& traits);

}  // namespace tessera::cuda
