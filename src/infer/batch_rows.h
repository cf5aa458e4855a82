// Rows of tensors, whose first axis is that of the samples.
#pragma once

#include <cstdint>

#include "tessera/base/tensor.h"

namespace tessera::infer {

// Rows [first, first + count) of a tensor as the first of so many; zeros follow. The tensor itself where that
// is all of it.
Tensor take_rows(const Tensor& tensor, int64_t first, int64_t count, int64_t rows);
// The first `count` rows of `source` become rows [first, first + count) of `target`.
void put_rows(const Tensor& source, Tensor& target, int64_t first, int64_t count);

}  // namespace tessera::infer
