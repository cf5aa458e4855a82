// Attention, or its gradient, as a node has it: the problem, and where in its inputs and outputs operands
// lie.
#pragma once

#include <cstdint>
#include <vector>

#include "tessera/compile/kernel.h"

#include "device/cuda/cudnn/cudnn_attention_graph.h"

namespace tessera::cuda {

// An operand in the memory of a node.
struct PlacedOperand {
  AttentionOperand operand;
  size_t place = 0;    // among the inputs, or the outputs
  int64_t offset = 0;  // in elements
  DataType type = DataType::fp32;

  int64_t offset_bytes() const { return offset * static_cast<int64_t>(size_of(type)); }
};

struct PlacedAttention {
  AttentionProblem problem;
  std::vector<PlacedOperand> inputs;
  std::vector<PlacedOperand> outputs;
};

// "attention" or "attention_gradient", or one of these with dropout, with all operands in row-major order.
AttentionProblem attention_problem_of(const Node& attention);

// The same of a node that may hold one of these with what moves its operands and results.
AttentionProblem attention_problem_in(const Node& node);

// Of one of these, or of one with what moves its operands and results. Refuses (device/common/refusal.h) rows
// that do not begin at multiples of backend::kAttentionRowAlignment.
PlacedAttention read_attention(const KernelRequest& request);

}  // namespace tessera::cuda
