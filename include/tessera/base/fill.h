// Tensors of random numbers, on as many threads as the machine has processors.
#pragma once

#include <array>
#include <cstdint>
#include <functional>

#include "tessera/base/tensor.h"

namespace tessera {

// Element i becomes number i % 4 of draw(i / 4), rounded to the tensor's type, as Tensor::set() does it.
// `draw` is called by several threads at once where the tensor is large, and makes of each block what it
// always makes, so that the number of threads changes no bit.
void fill_by_blocks(Tensor& tensor, const std::function<std::array<double, 4>(uint64_t block)>& draw);

}  // namespace tessera
