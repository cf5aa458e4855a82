// Gradients of tables by the rows that a step reads.
#pragma once

#include <vector>

#include "tessera/nn/context.h"
#include "tessera/ops/functions.h"

namespace tessera::train {

// Where a parameter is read: parts of it, [indices..., row...], and the indices.
struct RowReads {
  std::vector<Value*> parts;
  std::vector<Value*> indices;
};

// Throws Error(invalid_argument) naming the node that reads the table otherwise than by its rows.
RowReads row_reads(const nn::Variable& variable, const Value* table);

// The gradients of all reads of a table as one of distinct rows, in fp32.
ops::CombinedRows combined_rows(const Value* table, const std::vector<Value*>& indices,
                                const std::vector<Value*>& gradients);

}  // namespace tessera::train
