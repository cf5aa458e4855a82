// What the batch normalisation kernels share: the activation as rows, and which input or output of the
// node plays which part.
#pragma once

#include <optional>
#include <string>
#include <vector>

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

// The index of the body's (or node's) input or output that is this value; nullopt when it is none.
std::optional<size_t> input_of(const Node& node, const Value* value);
std::optional<size_t> output_of(const Node& node, const Value* value);
// As input_of; throws Error(unsupported) when it is none.
size_t required_input(const Node& node, const Value* value);

// The one node of this operator in the body, or the node itself without a body. Throws Error(unsupported).
const Node& main_node(const Node& node, std::string_view operator_name);

// Refuses x of other types than fp32, fp16, bf16, other than fp32 statistics, and empty tensors.
void check_batch_norm_types(const Value& x, const Value& scale);

}  // namespace tessera::cpu
