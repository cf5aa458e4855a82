// Convolutions of two spatial axes, of any type, as cases of tests.
#pragma once

#include <algorithm>
#include <memory>
#include <string>
#include <vector>

#include <fmt/format.h>

#include "tessera/graph/graph.h"

#include "passes/run_pass.h"
#include "support/fusions.h"
#include "support/tf32.h"

namespace tessera::testing {

struct ConvolutionCase {
  std::string name;
  std::string x, weight, y;
  int64_t stride, low, high;  // padding
  int64_t groups = 1;
};

inline std::string window_of(const ConvolutionCase& own) {
  return fmt::format(
      "dilations = [1, 1], groups = {3}, padding_high = [{2}, {2}], padding_low = [{1}, {1}], "
      "strides = [{0}, {0}]",
      own.stride, own.low, own.high, own.groups);
}

inline std::unique_ptr<Graph> convolution_of(const ConvolutionCase& own, const std::string& type) {
  return parse_graph(
      fmt::format("graph g(input %x: {0}{1}, input %weight: {0}{2}) {{\n"
                  "  %y: {0}{3} = convolution(%x, %weight) {{{4}}}\n  output y = %y\n}}",
                  type, own.x, own.weight, own.y, window_of(own)));
}

// As fuse_patterns makes them: a bias, perhaps a residual, perhaps an activation, such as "relu" or
// "clip {high = 2.0, low = 0.0}".
inline std::unique_ptr<Graph> fused_of(const ConvolutionCase& own, const std::string& type, bool residual,
                                       const std::string& activation) {
  const std::string channels = own.weight.substr(1, own.weight.find(',') - 1);
  const std::string sum = residual ? "%s" : "%b";
  const size_t name = std::min(activation.find(' '), activation.size());
  const std::unique_ptr<Graph> graph = parse_graph(fmt::format(
      "graph g(input %x: {0}{1}, input %weight: {0}{2}, input %bias: {0}[{5}]{6}) {{\n"
      "  %c: {0}{3} = convolution(%x, %weight) {{{4}}}\n  %b = add(%c, %bias)\n{7}{8}  output y = {9}\n}}",
      type, own.x, own.weight, own.y, window_of(own), channels,
      residual ? fmt::format(", input %residual: {}{}", type, own.y) : "",
      residual ? "  %s = add(%b, %residual)\n" : "",
      activation.empty()
          ? ""
          : fmt::format("  %r = {}({}){}\n", activation.substr(0, name), sum, activation.substr(name)),
      activation.empty() ? sum : "%r"));
  EXPECT_TRUE(run_pass(*graph, "fuse_patterns", brings({backend::contraction_pattern("convolution")})));
  return parse_graph(print(*graph));
}

inline std::unique_ptr<Graph> gradient_of(const ConvolutionCase& own, const std::string& type) {
  return parse_graph(fmt::format(
      "graph g(input %x: {0}{1}, input %dy: {0}{3}) {{\n  %dw: {0}{2} = convolution_weight_gradient(%x, %dy) "
      "{{{4}, weight_shape = {2}}}\n  output dw = %dw\n}}",
      type, own.x, own.weight, own.y, window_of(own)));
}

// Weights whose last bits a device rounds away are off by the same in each term of what it sums over pixels.
inline std::vector<Tensor> with_exact_weights(const Node& node, std::vector<Tensor> inputs) {
  for (size_t i = 0; i < inputs.size(); ++i) {
    if (node.input(i)->name() == "weight") inputs[i] = rounded_to_tf32(inputs[i]);
  }
  return inputs;
}

// Those in fp32 are numbers of TF32, so that their products are exact.
inline std::vector<Tensor> exact_inputs(const Graph& graph) {
  std::vector<Tensor> inputs = graph_inputs(graph);
  for (Tensor& input : inputs) input = rounded_to_tf32(input);
  return inputs;
}

}  // namespace tessera::testing
