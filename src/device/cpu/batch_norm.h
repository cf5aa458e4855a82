// What the batch normalisation kernels share: the activation as rows.
#pragma once

#include <cstdint>

#include "tessera/compile/kernel.h"
#include "tessera/device/common/workspace_layout.h"

#include "device/cpu/batch_norm_loops.h"

namespace tessera::cpu {

using backend::WorkspaceArray;
using backend::WorkspaceLayout;

// Results larger than this go past the caches: they would be gone before anything reads them.
inline constexpr int64_t kStreamBytes = int64_t{16} << 20;

struct ActivationRows {
  DataType type = DataType::fp32;
  int64_t rows = 0;
  int64_t channels = 0;
  int64_t parts = 1;  // into which the rows are divided

  explicit ActivationRows(const TensorType& tensor);
  RowRange range(int64_t begin, int64_t end) const { return {type, channels, begin, end}; }
  bool stream() const;
};

// scale / sqrt(variance + epsilon). The gradient finds out from the same numbers, bit for bit, where y was
// positive.
float normalising_factor(float scale, float variance, double epsilon);

// Sums of all parts: 2 numbers per channel and part, added in the order of the parts into the first.
void add_parts(int64_t parts, int64_t channels, double* sums);

}  // namespace tessera::cpu
