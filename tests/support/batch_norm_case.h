// Batch normalizations, alone and fused with their neighbors, as small graphs for every device.
#pragma once

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "passes/run_pass.h"
#include "support/every_kernel.h"
#include "support/fusions.h"

namespace tessera::testing {

struct Extents {
  Shape x;
  DataType type = DataType::fp32;
};

inline std::string name_of(const Extents& extents) {
  std::string name(to_string(extents.type));
  for (int64_t extent : extents.x) name += "_" + std::to_string(extent);
  return name;
}

struct BatchNormText {
  std::string name;
  std::string kind;  // of the fused node that fuse_patterns makes of it; "": nothing to fuse
  std::string text;  // $X: the activation's type, $C: the statistics', $ZERO: a zero as an attribute
};

inline std::vector<BatchNormText> batch_norm_texts() {
  return {
      {"Training", "", R"(graph g(input %x: $X, input %scale: $C, input %bias: $C) {
    %y, %mean, %variance = batch_norm_training(%x, %scale, %bias)
    output y = %y
  })"},
      {"TrainingWithRelu", "batch_norm", R"(graph g(input %x: $X, input %scale: $C, input %bias: $C) {
    %n, %mean, %variance = batch_norm_training(%x, %scale, %bias) {epsilon = 0.01}
    %y = relu(%n)
    output y = %y
    output mean = %mean
    output variance = %variance
  })"},
      {"TrainingWithResidualAndRelu", "batch_norm",
       R"(graph g(input %x: $X, input %scale: $C, input %bias: $C, input %residual: $X) {
    %n, %mean, %variance = batch_norm_training(%x, %scale, %bias)
    %sum = add(%residual, %n)
    %y = relu(%sum)
    output y = %y
    output variance = %variance
  })"},
      {"TrainingWithResidual", "batch_norm",
       R"(graph g(input %x: $X, input %scale: $C, input %bias: $C, input %residual: $X) {
    %n, %mean, %variance = batch_norm_training(%x, %scale, %bias)
    %y = add(%n, %residual)
    output y = %y
  })"},
      {"InferenceWithRelu", "batch_norm_inference",
       R"(graph g(input %x: $X, input %scale: $C, input %bias: $C, input %mean: $C, input %variance: $C) {
    %n = batch_norm_inference(%x, %scale, %bias, %mean, %variance) {epsilon = 0.01}
    %y = relu(%n)
    output y = %y
  })"},
      {"Gradient", "",
       R"(graph g(input %dy: $X, input %x: $X, input %scale: $C, input %mean: $C, input %variance: $C) {
    %dx, %dscale, %dbias = batch_norm_gradient(%dy, %x, %scale, %mean, %variance)
    output dx = %dx
    output dscale = %dscale
    output dbias = %dbias
  })"},
      {"GradientWithMask", "batch_norm_gradient",
       R"(graph g(input %dy: $X, input %y: $X, input %x: $X, input %scale: $C, input %mean: $C, input %variance: $C) {
    %zero = constant() {value = $ZERO}
    %open = greater(%y, %zero)
    %dz = select(%open, %dy, %zero)
    %dx, %dscale, %dbias = batch_norm_gradient(%dz, %x, %scale, %mean, %variance)
    output dx = %dx
    output dscale = %dscale
    output dbias = %dbias
  })"},
      {"GradientWithMaskFromX", "batch_norm_gradient",
       R"(graph g(input %dy: $X, input %x: $X, input %scale: $C, input %bias: $C, input %mean: $C,
                   input %variance: $C) {
    %dx: $X, %dscale: $C, %dbias: $C = fused(%x, %scale, %bias, %mean, %variance, %dy) {kind = "batch_norm_gradient", role_values = [9, 0, 1, 3, 4, 10, 11, 12, 9, 5, 2], roles = ["output_gradient", "x", "scale", "mean", "variance", "input_gradient", "scale_gradient", "bias_gradient", "masked", "dy", "mask_bias"]} body graph batch_norm_gradient(
      input %x: $X,
      input %scale: $C,
      input %bias: $C,
      input %mean: $C,
      input %variance: $C,
      input %dy: $X) {
      %zero = constant() {value = $ZERO}
      %n = batch_norm_inference(%x, %scale, %bias, %mean, %variance) {epsilon = 0.01}
      %open = greater(%n, %zero)
      %dz = select(%open, %dy, %zero)
      %dx, %dscale, %dbias = batch_norm_gradient(%dz, %x, %scale, %mean, %variance) {epsilon = 0.01}
      output dx = %dx
      output dscale = %dscale
      output dbias = %dbias
    }
    output dx = %dx
    output dscale = %dscale
    output dbias = %dbias
  })"},
      {"GradientWithSumAndMaskThatOthersRead", "batch_norm_gradient",
       R"(graph g(input %dy: $X, input %dy2: $X, input %y: $X, input %x: $X, input %scale: $C, input %mean: $C,
                   input %variance: $C) {
    %zero = constant() {value = $ZERO}
    %sum = add(%dy, %dy2)
    %open = greater(%y, %zero)
    %dz = select(%open, %sum, %zero)
    %dx, %dscale, %dbias = batch_norm_gradient(%dz, %x, %scale, %mean, %variance)
    output dz = %dz
    output dx = %dx
    output dscale = %dscale
    output dbias = %dbias
  })"}};
}

inline std::unique_ptr<Graph> batch_norm_graph(std::string text, const Extents& extents) {
  const std::string x = std::string(to_string(extents.type)) + to_string(extents.x);
  const std::string c = "fp32[" + std::to_string(extents.x.back()) + "]";
  const std::string zero = std::string(to_string(extents.type)) + "[] (0)";
  const std::vector<std::pair<std::string, std::string>> words{{"$X", x}, {"$C", c}, {"$ZERO", zero}};
  for (const auto& [word, replacement] : words) {
    for (size_t at = text.find(word); at != std::string::npos; at = text.find(word, at + replacement.size()))
      text.replace(at, word.size(), replacement);
  }
  return parse_graph(text);
}

// Its body adds two gradients, those of the windows that share a pixel, or a residual.
inline bool has_sum(const Value& output) {
  const Graph* body = output.producer()->body();
  if (body == nullptr) return false;
  for (const auto& node : body->nodes()) {
    if (node->operator_name() == "add" || node->operator_name() == "max_pool_gradient") return true;
  }
  return false;
}

inline bool is_gradient(const Value& output) {
  const Node& node = *output.producer();
  return (node.body() == nullptr ? node.operator_name() : node.attributes().text("kind"))
      .ends_with("gradient");
}

// The graph as one node, with inputs and tolerances for it.
struct BatchNormCase {
  std::unique_ptr<Graph> graph;
  const Node* node = nullptr;
  std::vector<Tensor> inputs;  // of the node
  Tolerances tolerances;
};

// x is within 2 and so is its mean, or dy; variances that are given are at least 0.5, scales at most 2. That
// leaves |x - mean| / deviation below 6, and below 8 what scale and bias make of it.
inline Tolerance batch_norm_tolerance(const Value& output, const Extents& extents,
                                      bool rounds_before_sum = false) {
  const int64_t rows = element_count(extents.x) / extents.x.back();
  const DataType type = output.data_type();
  const std::string& name = output.name();
  if (name.starts_with("mean")) return mean_tolerance(type, {rows, 2});
  if (name.starts_with("variance")) {
    Tolerance result = variance_tolerance(type, rows);
    result.absolute += 4 * unit_roundoff(type) * 2 * 2;  // as the difference of the squares and the mean's
    return result;
  }
  // Of a sum of two gradients, each within 2, that may be rounded before it is added: independent errors.
  const double u = extents.type == DataType::fp32 ? 0 : 4 * unit_roundoff(extents.type);
  if (output.type().rank() == 1) {
    const double largest = name.starts_with("dscale") ? 4 * 6 : 4;
    Tolerance result = tolerance_for(OperatorClass::reduction, type, {rows, largest});
    if (is_gradient(output) && has_sum(output))
      result.absolute += 4 * std::sqrt(static_cast<double>(rows)) * u * largest / 4;
    return result;
  }
  Tolerance result = tolerance_for(OperatorClass::normalization, type, {rows, 8});
  if (is_gradient(output) && has_sum(output)) result.absolute += 4 * u;  // scale / deviation is below 3
  if (!is_gradient(output) && has_sum(output) && rounds_before_sum) result.absolute += 2 * u;  // of 8 at most
  return result;
}

// `rounds_before_sum`: kernels may round what the residual is added to, so that it has the bits of what
// others recompute.
inline BatchNormCase batch_norm_case(const BatchNormText& text, const Extents& extents,
                                     bool rounds_before_sum = false) {
  BatchNormCase result;
  result.graph = batch_norm_graph(text.text, extents);
  if (!text.kind.empty()) {
    run_pass(*result.graph, "fuse_patterns", brings(batch_norm_patterns()));
    verify(*result.graph);
  }
  for (const auto& candidate : result.graph->nodes()) {
    if (candidate->operator_name() != "constant") result.node = candidate.get();
  }
  const Node& node = *result.node;
  EXPECT_EQ(node.operator_name() == "fused" ? node.attributes().text("kind") : "", text.kind)
      << print(*result.graph);
  const std::vector<Tensor> all = graph_inputs(*result.graph);
  for (const Value* input : node.inputs()) result.inputs.push_back(all.at(input->index()));
  for (const auto& output : node.outputs())
    result.tolerances.push_back(batch_norm_tolerance(*output, extents, rounds_before_sum));
  return result;
}

}  // namespace tessera::testing
