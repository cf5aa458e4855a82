// Numbers of TF32, whose products are exact in fp32.
#pragma once

#include <bit>

#include "tessera/base/tensor.h"

namespace tessera::testing {

// The number of TF32 that is nearest to each of fp32; of two the greater in size. Tensors of other types
// stay.
inline Tensor rounded_to_tf32(const Tensor& tensor) {
  if (tensor.data_type() != DataType::fp32) return tensor;
  Tensor result(tensor.data_type(), tensor.shape());
  for (int64_t i = 0; i < tensor.size(); ++i) {
    const auto bits = std::bit_cast<uint32_t>(static_cast<float>(tensor.at(i)));
    const bool finite = (bits & 0x7f800000U) != 0x7f800000U;
    result.set(i, std::bit_cast<float>(finite ? (bits + 0x1000U) & ~0x1fffU : bits));
  }
  return result;
}

}  // namespace tessera::testing
