// Attention's sizes, and how near its kernels come.
#pragma once

#include <algorithm>
#include <cmath>
#include <memory>
#include <string>
#include <tuple>
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
  bool lengths = false;   // of keys: key_lengths_of()
  int64_t key_heads = 0;  // 0: as many as there are heads

  int64_t heads_of_keys() const { return key_heads == 0 ? heads : key_heads; }
  bool shares_keys() const { return heads_of_keys() != heads; }
};

// What the kernel that holds a head in shared memory takes; of keys that heads share no gradient, here and
// below.
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

// y and log_sum, then the gradients.
inline std::unique_ptr<Graph> attention_graph(const AttentionCase& own) {
  const std::string type(to_string(own.type));
  const auto tensor = [&](int64_t heads, int64_t rows, int64_t width) {
    return fmt::format("{}[{}, {}, {}, {}]", type, own.batch, heads, rows, width);
  };
  std::string inputs, operands, options = fmt::format("scale = {}, causal = {}", 0.125, own.causal);
  const std::string drops = own.dropout > 0 ? "dropout_" : "";
  if (own.dropout > 0) {
    inputs += ", input %counter: int64[2]";
    operands += ", %counter";
    options += fmt::format(", rate = {}, stream = 5", own.dropout);
  }
  if (own.bias) {
    inputs += fmt::format(", input %bias: {}[1, {}, {}, {}]", type, own.heads, own.queries, own.keys);
    operands += ", %bias";
  }
  if (own.lengths) {
    inputs += fmt::format(", input %key_lengths: int32[{}]", own.batch);
    operands += own.bias ? ", %key_lengths" : ", _, %key_lengths";
  }
  return parse_graph(
      fmt::format("graph attention(input %q: {0}, input %k: {1}, input %v: {2}, input %dy: {3}{4}) {{\n"
                  "  %y, %log_sum = {7}attention(%q, %k, %v{5}) {{{6}}}\n"
                  "  %dq, %dk, %dv = {7}attention_gradient(%dy, %q, %k, %v, %y, %log_sum{5}) {{{6}}}\n"
                  "  output y = %y\n  output log_sum = %log_sum\n"
                  "  output dq = %dq\n  output dk = %dk\n  output dv = %dv\n}}",
                  tensor(own.heads, own.queries, own.width), tensor(own.heads_of_keys(), own.keys, own.width),
                  tensor(own.heads_of_keys(), own.keys, own.value_width),
                  tensor(own.heads, own.queries, own.value_width), inputs, operands, options, drops));
}

// All keys, one, and what is between.
inline Tensor key_lengths_of(const AttentionCase& own) {
  Tensor lengths(DataType::int32, {own.batch});
  for (int64_t i = 0; i < own.batch; ++i)
    lengths.set(i, static_cast<double>(own.keys - i * (own.keys - 1) / std::max<int64_t>(1, own.batch - 1)));
  return lengths;
}

inline Tensor input_of(const AttentionCase& own, const Value& input, uint64_t seed) {
  if (input.name() == "key_lengths") return key_lengths_of(own);
  if (input.name() == "counter") return Tensor::from<int64_t>({2}, {(int64_t{9} << 40) + 7, 3});
  return random_tensor(input.data_type(), input.type().static_shape(), -kLargestOperand, kLargestOperand,
                       seed);
}

struct RunCase {
  std::unique_ptr<Graph> graph;
  std::vector<Tensor> inputs;    // of the graph
  std::vector<Tensor> expected;  // y, log_sum, dq, dk, dv
  std::vector<Tensor> forward;   // inputs of the nodes
  std::vector<Tensor> backward;

  const Node& attention() const { return *graph->nodes().front(); }
  const Node& gradient() const { return *graph->nodes().back(); }
};

// `lifted`: added to every second column of v. There results are so large that their last rounding shows, and
// in the others each key does.
inline RunCase run_case(const AttentionCase& own, double lifted = 0) {
  RunCase result;
  result.graph = attention_graph(own);
  for (const auto& input : result.graph->inputs())
    result.inputs.push_back(input_of(own, *input, 3 + result.inputs.size()));
  Tensor& values = result.inputs[2];
  for (int64_t i = 0; lifted != 0 && i < values.size(); i += 2) values.set(i, values.at(i) + lifted);
  const auto& [q, k, v, dy] =
      std::tie(result.inputs[0], result.inputs[1], result.inputs[2], result.inputs[3]);
  result.expected = run_reference(*result.graph, result.inputs).outputs;
  result.forward = {q, k, v};
  result.backward = {dy, q, k, v, result.expected[0], result.expected[1]};
  for (size_t i = 4; i < result.inputs.size(); ++i) {
    result.forward.push_back(result.inputs[i]);
    result.backward.push_back(result.inputs[i]);
  }
  return result;
}

inline double largest_of(const Tensor& tensor) {
  double result = 0;
  for (double value : tensor.to_doubles()) result = std::max(result, std::abs(value));
  return result;
}

// Of sums over keys, a head's width, or so many queries.
inline Problem problem_of(const AttentionCase& own, int64_t queries) {
  return {.terms = std::max({queries, own.keys, own.width}), .magnitude = kLargestOperand * kLargestOperand};
}

// In 16 bits the weights are rounded before they multiply v: by a unit each, and so the sums by at most a
// unit of the largest v.
inline Tolerances forward_tolerances(const AttentionCase& own) {
  const Tolerance exact =
      tolerance_for(OperatorClass::contraction, DataType::fp32, problem_of(own, own.queries));
  if (own.type == DataType::fp32) return {exact, exact};
  const double u = unit_roundoff(own.type), kept = 1 / (1 - own.dropout);
  return {{.absolute = (exact.absolute + 2 * u * kLargestOperand) * kept, .relative = 2 * u}, exact};
}

// Weights and their gradients are rounded before the products; the errors are independent, and each is a unit
// of its term. 8 units of the largest result leave room beyond five standard deviations.
inline Tolerance backward_tolerance(const AttentionCase& own, const Tensor& expected) {
  // Gradients of keys are sums over the queries of all heads that share them.
  const Tolerance exact = tolerance_for(OperatorClass::contraction, DataType::fp32,
                                        problem_of(own, own.queries * own.heads / own.heads_of_keys()));
  const double scale = std::max(1.0, largest_of(expected));
  const double u = own.type == DataType::fp32 ? 0 : unit_roundoff(own.type);
  return {.absolute = scale * (exact.absolute + 8 * u), .relative = exact.relative + 2 * u};
}

inline void expect_forward(const RunCase& own, const Tolerances& tolerances) {
  const std::vector<bool> frozen(own.forward.size(), false);
  expect_every_kernel(own.attention(), own.forward, tolerances, frozen, gpu_or_null());
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
