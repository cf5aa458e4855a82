// Tensors put together and taken apart on the host.
#pragma once

#include <vector>

#include "tessera/base/tensor.h"

namespace tessera::onnx {

// Throw Error(invalid_argument) where types or shapes differ. Nothing to stack makes no tensor.
Tensor concatenate(const std::vector<Tensor>& parts, int64_t axis);
Tensor stack(const std::vector<Tensor>& parts, int64_t axis);  // along a new axis
// The elements [start, limit) of an axis.
Tensor part_of(const Tensor& tensor, int64_t axis, int64_t start, int64_t limit);
// The element of an axis, without it.
Tensor element_of(const Tensor& tensor, int64_t axis, int64_t index);

}  // namespace tessera::onnx
