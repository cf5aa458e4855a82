// Attention's sizes, and how near its kernels come.
#pragma once

#include <algorithm>
#include <cmath>
#include <string>
#include <vector>

#include "device_cuda/cuda_case.h"
#include "support/every_kernel.h"

namespace tessera::testing {

struct AttentionCase {
  int64_t batch = 2;
  int64_t heads = 3;
  int64_t queries = 128;
  int64_t keys = 128;
  int64_t width = 64;
  int64_t value_width = 64;
  bool causal = false;
  bool bias = false;
  DataType type = DataType::fp16;
  double dropout = 0;
};

// What the kernel that holds a head in shared memory takes.
inline bool is_short(const AttentionCase& own) {
  return own.type != DataType::fp32 && own.width == own.value_width && own.width % 16 == 0 &&
         own.width <= 128 && own.queries <= 128 && own.keys <= 128 && own.dropout == 0;
}

// And the one that goes over keys, or queries, by blocks: of longer texts only with dropout.
inline bool is_by_blocks(const AttentionCase& own) {
  return (own.dropout > 0 || std::max(own.queries, own.keys) <= 256) && own.type != DataType::fp32 &&
         own.width == own.value_width && own.width % 16 == 0 && own.width <= 128 &&
         (own.dropout == 0 || own.keys % 4 == 0);
}

// Of the operands.
inline constexpr double kLargestOperand = 2;

inline Tensor input_of(const Value& input, uint64_t seed) {
  if (input.name() == "counter") return Tensor::from<int64_t>({2}, {(int64_t{9} << 40) + 7, 3});
  return random_tensor(input.data_type(), input.type().static_shape(), -kLargestOperand, kLargestOperand,
                       seed);
}

inline double largest_of(const Tensor& tensor) {
  double result = 0;
  for (double value : tensor.to_doubles()) result = std::max(result, std::abs(value));
  return result;
}

inline Problem problem_of(const AttentionCase& own) {
  return {.terms = std::max({own.queries, own.keys, own.width}),
          .magnitude = kLargestOperand * kLargestOperand};
}

// In 16 bits the weights are rounded before they multiply v: by a unit each, and so the sums by at most a
// unit of the largest v.
inline Tolerances forward_tolerances(const AttentionCase& own) {
  const Tolerance exact = tolerance_for(OperatorClass::contraction, DataType::fp32, problem_of(own));
  if (own.type == DataType::fp32) return {exact, exact};
  const double u = unit_roundoff(own.type), kept = 1 / (1 - own.dropout);
  return {{.absolute = (exact.absolute + 2 * u * kLargestOperand) * kept, .relative = 2 * u}, exact};
}

// Weights and their gradients are rounded before the products; the errors are independent, and each is a unit
// of its term. 8 units of the largest result leave room beyond five standard deviations.
inline Tolerance backward_tolerance(const AttentionCase& own, const Tensor& expected) {
  const Tolerance exact = tolerance_for(OperatorClass::contraction, DataType::fp32, problem_of(own));
  const double scale = std::max(1.0, largest_of(expected));
  const double u = own.type == DataType::fp32 ? 0 : unit_roundoff(own.type);
  return {.absolute = scale * (exact.absolute + 8 * u), .relative = exact.relative + 2 * u};
}

// Empty where the device takes the node by that kernel.
inline std::string refusal_of(const std::string& kernel, const Node& node, bool deterministic) {
  const KernelRequest request{.node = node,
                              .frozen_inputs = std::vector<bool>(node.inputs().size(), false),
                              .deterministic = deterministic};
  for (const KernelCandidate& candidate : gpu_or_null()->candidates(node)) {
    if (candidate.name == kernel) return candidate.refusal(request);
  }
  return "there is no " + kernel;
}

}  // namespace tessera::testing
