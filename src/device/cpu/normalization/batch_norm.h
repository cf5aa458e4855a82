// What the batch normalization kernels share: the activation as rows.
#pragma once

#include <cstdint>

#include "tessera/compile/kernel.h"
#include "tessera/device/common/workspace_layout.h"

#include "device/cpu/normalization/batch_norm_loops.h"
#include "device/cpu/panels/blocks.h"

namespace tessera::cpu {

using backend::WorkspaceArray;
using backend::WorkspaceLayout;

struct ActivationRows {
  DataType type = DataType::fp32;
  int64_t channels = 0;
  Blocks blocks;  // of rows; how many depends on the shape alone, so that sums are the same on any machine

  explicit ActivationRows(const TensorType& tensor);
  int64_t rows() const { return blocks.total; }
  RowRange block(int64_t index) const {
    const Range rows = blocks.block(index);
    return {type, channels, rows.begin, rows.end};
  }
  bool stream() const;
};

// scale / sqrt(variance + epsilon). The gradient finds out from the same numbers, bit for bit, where y was
// positive.
float normalizing_factor(float scale, float variance, double epsilon);

// Sums of all blocks: 2 numbers per channel and block, added in the order of the blocks into the first.
void add_blocks(int64_t blocks, int64_t channels, double* sums);

}  // namespace tessera::cpu
