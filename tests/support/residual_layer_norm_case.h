// A layer norm over the sum of a residual and what dropout left of a branch, and its gradient, as cases for
// the kernels of every device.
#pragma once

#include <algorithm>
#include <cmath>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "tessera/device/common/residual_layer_norm.h"

#include "passes/run_pass.h"
#include "support/every_kernel.h"
#include "support/fusions.h"

namespace tessera::testing {

// With $X: the activation's type, $R: that of one number by row, $C: of one by channel, $B: of the bias.
struct ResidualNormText {
  std::string name;
  std::string kind;  // of the fused node
  std::string text;
};

inline std::vector<ResidualNormText> residual_norm_texts() {
  return {
      {"Forward", "residual_layer_norm",
       R"(graph g(input %branch: $X, input %bias: $B, input %residual: $X, input %scale: $C, input %shift: $C,
                  input %counter: int64[2]) {
    %biased = add(%branch, %bias)
    %kept = dropout(%biased, %counter) {rate = 0.25, stream = 3}
    %sum = add(%residual, %kept)
    %y, %mean, %inverse = layer_norm(%sum, %scale, %shift) {axes = 1, epsilon = 4.0}
    output y = %y
    output sum = %sum
    output mean = %mean
    output inverse = %inverse
  })"},
      {"ForwardOfWhatNothingElseReads", "residual_layer_norm",
       R"(graph g(input %branch: $X, input %residual: $X, input %scale: $C, input %shift: $C,
                  input %counter: int64[2]) {
    %kept = dropout(%branch, %counter) {rate = 0.5, stream = 1}
    %sum = add(%kept, %residual)
    %y, %mean, %inverse = layer_norm(%sum, %scale, %shift) {axes = 1, epsilon = 4.0}
    output y = %y
  })"},
      {"Gradient", "residual_layer_norm_gradient",
       R"(graph g(input %dy: $X, input %sum: $X, input %scale: $C, input %mean: $R, input %scale_of_row: $R,
                  input %incoming: $X, input %counter: int64[2]) {
    %dx, %dscale, %dshift = layer_norm_gradient(%dy, %sum, %scale, %mean, %scale_of_row) {axes = 1}
    %dsum = add(%incoming, %dx)
    %dbranch = dropout(%dsum, %counter) {rate = 0.25, stream = 3}
    %wide = cast(%dbranch) {type = $W}
    %dbias = reduce_sum(%wide) {axes = $LEADING}
    output dsum = %dsum
    output dbranch = %dbranch
    output dscale = %dscale
    output dshift = %dshift
    output dbias = %dbias
  })"},
      {"GradientOfTheBranchAlone", "residual_layer_norm_gradient",
       R"(graph g(input %dy: $X, input %sum: $X, input %scale: $C, input %mean: $R, input %scale_of_row: $R,
                  input %counter: int64[2]) {
    %dx, %dscale, %dshift = layer_norm_gradient(%dy, %sum, %scale, %mean, %scale_of_row) {axes = 1}
    %dbranch = dropout(%dx, %counter) {rate = 0.5, stream = 0}
    output dbranch = %dbranch
    output dshift = %dshift
  })"},
      {"RootMeanSquare", "residual_layer_norm",
       R"(graph g(input %branch: $X, input %bias: $B, input %residual: $X, input %scale: $C,
                  input %counter: int64[2]) {
    %biased = add(%branch, %bias)
    %kept = dropout(%biased, %counter) {rate = 0.25, stream = 3}
    %sum = add(%residual, %kept)
    %y, %mean, %inverse = layer_norm(%sum, %scale) {axes = 1, epsilon = 4.0, centered = false}
    output y = %y
    output sum = %sum
    output inverse = %inverse
  })"},
      {"GradientOfRootMeanSquare", "residual_layer_norm_gradient",
       R"(graph g(input %dy: $X, input %sum: $X, input %scale: $C, input %mean: $R, input %scale_of_row: $R,
                  input %incoming: $X, input %counter: int64[2]) {
    %dx, %dscale, %dshift = layer_norm_gradient(%dy, %sum, %scale, %mean, %scale_of_row) {axes = 1,
                                                                                          centered = false}
    %dsum = add(%incoming, %dx)
    %dbranch = dropout(%dsum, %counter) {rate = 0.25, stream = 3}
    output dsum = %dsum
    output dbranch = %dbranch
    output dscale = %dscale
  })"},
      {"GradientWithoutDropout", "residual_layer_norm_gradient",
       R"(graph g(input %dy: $X, input %sum: $X, input %scale: $C, input %mean: $R, input %scale_of_row: $R,
                  input %incoming: $X) {
    %dx, %dscale, %dshift = layer_norm_gradient(%dy, %sum, %scale, %mean, %scale_of_row) {axes = 1}
    %dsum = add(%dx, %incoming)
    output dsum = %dsum
    output dscale = %dscale
    output dshift = %dshift
  })"},
      {"GradientOfRootMeanSquareWithoutDropout", "residual_layer_norm_gradient",
       R"(graph g(input %dy: $X, input %sum: $X, input %scale: $C, input %mean: $R, input %scale_of_row: $R,
                  input %incoming: $X) {
    %dx, %dscale, %dshift = layer_norm_gradient(%dy, %sum, %scale, %mean, %scale_of_row) {axes = 1,
                                                                                          centered = false}
    %dsum = add(%dx, %incoming)
    output dsum = %dsum
    output dscale = %dscale
  })"}};
}

struct ResidualNormExtents {
  Shape x;
  DataType type = DataType::fp32;
};

inline std::string name_of(const ResidualNormText& text, const ResidualNormExtents& own) {
  std::string name = text.name + "_" + std::string(to_string(own.type));
  for (const int64_t extent : own.x) name += "_" + std::to_string(extent);
  return name;
}

// Whole and broken vectors, few and many rows, one and two blocks of them. In 16 bits rows are short: what
// one element of a long one does to its mean is lost in the rounding.
inline std::vector<ResidualNormExtents> residual_norm_extents() {
  std::vector<ResidualNormExtents> result;
  for (const DataType type : {DataType::fp32, DataType::fp64}) {
    for (const Shape& x : {Shape{4, 3, 33}, Shape{1, 5, 2048}, Shape{2, 64}, Shape{500, 40}})
      result.push_back({x, type});
  }
  for (const DataType type : {DataType::bf16, DataType::fp16}) {
    for (const Shape& x : {Shape{4, 3, 19}, Shape{3, 8}, Shape{2, 3, 4, 5}, Shape{900, 24}})
      result.push_back({x, type});
  }
  return result;
}

inline std::unique_ptr<Graph> residual_norm_graph(std::string text, const ResidualNormExtents& own) {
  const std::string type(to_string(own.type));
  const std::string wide = own.type == DataType::fp64 ? "fp64" : "fp32";
  const Shape rows(own.x.begin(), own.x.end() - 1);
  std::vector<int64_t> leading;
  for (int64_t axis = 0; axis < std::ssize(rows); ++axis) leading.push_back(axis);
  const std::vector<std::pair<std::string, std::string>> words{{"$LEADING", to_string(leading)},
                                                               {"$X", type + to_string(own.x)},
                                                               {"$R", wide + to_string(rows)},
                                                               {"$C", wide + to_string(Shape{own.x.back()})},
                                                               {"$B", type + to_string(Shape{own.x.back()})},
                                                               {"$W", wide}};
  for (const auto& [word, replacement] : words) {
    for (size_t at = text.find(word); at != std::string::npos; at = text.find(word, at + replacement.size()))
      text.replace(at, word.size(), replacement);
  }
  return parse_graph(text);
}

inline PassContext residual_norm_patterns() {
  return brings({backend::residual_layer_norm_gradient_pattern(), backend::residual_layer_norm_pattern()});
}

// The text as one node, with the inputs of it.
struct FusedResidualNorm {
  std::unique_ptr<Graph> graph;
  const Node* node = nullptr;
  std::vector<Tensor> inputs;
};

inline FusedResidualNorm fused_residual_norm(const ResidualNormText& text, const ResidualNormExtents& own) {
  FusedResidualNorm result{.graph = residual_norm_graph(text.text, own), .inputs = {}};
  run_pass(*result.graph, "fuse_patterns", residual_norm_patterns());
  verify(*result.graph);
  result.node = result.graph->nodes().back().get();
  EXPECT_EQ(result.graph->nodes().size(), 1U) << print(*result.graph);
  EXPECT_EQ(result.node->attributes().text("kind"), text.kind);
  const std::vector<Tensor> all = graph_inputs(*result.graph);
  for (const Value* input : result.node->inputs()) result.inputs.push_back(all.at(input->index()));
  return result;
}

// Inputs are within 2, so that a sum of branch, bias and residual is within 8, of which half a unit in the
// last place is 4 u, and one over the deviation within 0.5 or, where it is given, 2. The sum is rounded
// before it is normalized, and its gradient before dropout: that comes to the bounds of what is rounded once.
// Errors of a mean are independent.
inline Tolerance residual_norm_tolerance(const Value& output, const ResidualNormExtents& own) {
  const int64_t channels = own.x.back();
  const int64_t rows = element_count(own.x) / channels;
  const double u = size_of(own.type) == 2 ? unit_roundoff(own.type) : 0;
  const double of_mean = 4 * 4 * u / std::sqrt(static_cast<double>(channels));
  const std::string& name = output.name();
  const DataType type = output.data_type();
  if (name == "sum") return tolerance_for(OperatorClass::elementwise, type, {1, 8});
  if (name == "mean") {
    Tolerance result = mean_tolerance(type, {channels, 8});
    result.absolute += of_mean;
    return result;
  }
  if (name == "inverse") {
    // By half of its cube times the variance's error: twice the deviation, within 16, times that of a mean.
    Tolerance result = variance_tolerance(type, channels);
    result.absolute += 0.5 * 0.125 * 2 * 8 * of_mean;
    return result;
  }
  if (name == "y") {
    // Own error and the mean's, times scale and one over the deviation, and that of the latter.
    Tolerance result = tolerance_for(OperatorClass::normalization, type, {channels, 2 * 16 * 0.5});
    result.absolute += (4 * u + of_mean) * 2 * 0.5;
    result.relative += 2 * u;
    return result;
  }
  // n = (sum - mean) inverse is within 8, g = dy scale within 4: inverse (g - mean(g) - n mean(g n)). The
  // last mean is of as many terms within 32, of both signs, as a row has.
  const double mean_gn = std::min(32.0, 40 / std::sqrt(static_cast<double>(channels)));
  const double largest = 2 * (4 + 4 + 8 * mean_gn);
  if (name == "dsum" || name == "dbranch") {
    Tolerance result = tolerance_for(OperatorClass::normalization, type, {channels, largest});
    if (name == "dbranch") result.relative += 2 * u;
    return result;
  }
  if (name == "dscale") return tolerance_for(OperatorClass::reduction, type, {rows, 2 * 8});
  if (name == "dshift") return tolerance_for(OperatorClass::reduction, type, {rows, 2});
  // Most of what is added up is within 10; 1 / (1 - rate) may be rounded as well, which is the same for all.
  Tolerance result = tolerance_for(OperatorClass::reduction, type, {rows, largest});
  result.absolute += 4 * std::sqrt(static_cast<double>(rows)) * u * 10;
  result.relative += 2 * u;
  return result;
}

// Every kernel of the device for the node; returns their names.
inline std::vector<std::string> expect_every_residual_norm(const ResidualNormText& text,
                                                           const ResidualNormExtents& own,
                                                           const std::shared_ptr<Device>& device) {
  const FusedResidualNorm one = fused_residual_norm(text, own);
  Tolerances tolerances;
  for (const auto& output : one.node->outputs()) tolerances.push_back(residual_norm_tolerance(*output, own));
  return expect_every_kernel(*one.node, one.inputs, tolerances, std::vector<bool>(one.inputs.size(), false),
                             device);
}

// A norm with nothing before it, or its gradient with nothing after it.
struct NormAlone {
  int64_t rows = 0;
  int64_t channels = 0;
  bool centered = true;
};

inline std::unique_ptr<Graph> norm_alone(const NormAlone& own, const std::string& type) {
  return parse_graph(
      fmt::format("graph g(input %x: {0}[{1}, {2}], input %scale: {3}[{2}], input %bias: {3}[{2}]) {{\n"
                  "  %y, %mean, %inverse = layer_norm(%x, %scale, %bias) {{centered = {4}}}\n"
                  "  output y = %y\n  output mean = %mean\n  output inverse = %inverse\n}}",
                  type, own.rows, own.channels, type == "fp64" ? "fp64" : "fp32", own.centered));
}

inline std::unique_ptr<Graph> norm_gradient_alone(const NormAlone& own, const std::string& type) {
  return parse_graph(fmt::format(
      "graph g(input %dy: {0}[{1}, {2}], input %x: {0}[{1}, {2}], input %scale: {3}[{2}], input %mean: "
      "{3}[{1}], input %inverse: {3}[{1}]) {{\n"
      "  %dx, %dscale, %dbias = layer_norm_gradient(%dy, %x, %scale, %mean, %inverse) {{centered = {4}}}\n"
      "  output dx = %dx\n  output dscale = %dscale\n  output dbias = %dbias\n}}",
      type, own.rows, own.channels, type == "fp64" ? "fp64" : "fp32", own.centered));
}

}  // namespace tessera::testing
