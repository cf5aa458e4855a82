// Convolutions of two spatial axes, of any type, as cases of tests.
#pragma once

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
};

inline std::unique_ptr<Graph> convolution_of(const ConvolutionCase& own, const std::string& type) {
  return parse_graph(fmt::format(
      "graph g(input %x: {0}{1}, input %weight: {0}{2}) {{\n  %y: {0}{3} = convolution(%x, %weight) "
      "{{dilations = [1, 1], padding_high = [{5}, {5}], padding_low = [{4}, {4}], strides = [{6}, {6}]}}\n"
      "  output y = %y\n}}",
      type, own.x, own.weight, own.y, own.low, own.high, own.stride));
}

// As fuse_patterns makes them: a bias, perhaps a residual, perhaps a relu.
inline std::unique_ptr<Graph> fused_of(const ConvolutionCase& own, const std::string& type, bool residual,
                                       bool relu) {
  const std::string channels = own.weight.substr(1, own.weight.find(',') - 1);
  const std::unique_ptr<Graph> graph = parse_graph(fmt::format(
      "graph g(input %x: {0}{1}, input %weight: {0}{2}, input %bias: {0}[{7}]{8}) {{\n"
      "  %c: {0}{3} = convolution(%x, %weight) "
      "{{dilations = [1, 1], padding_high = [{5}, {5}], padding_low = [{4}, {4}], strides = [{6}, {6}]}}\n"
      "  %b = add(%c, %bias)\n{9}{10}  output y = {11}\n}}",
      type, own.x, own.weight, own.y, own.low, own.high, own.stride, channels,
      residual ? fmt::format(", input %residual: {}{}", type, own.y) : "",
      residual ? "  %s = add(%b, %residual)\n" : "",
      relu ? fmt::format("  %r = relu({})\n", residual ? "%s" : "%b") : "",
      relu       ? "%r"
      : residual ? "%s"
                 : "%b"));
  EXPECT_TRUE(run_pass(*graph, "fuse_patterns", brings({backend::contraction_pattern("convolution")})));
  return parse_graph(print(*graph));
}

inline std::unique_ptr<Graph> gradient_of(const ConvolutionCase& own, const std::string& type) {
  return parse_graph(fmt::format(
      "graph g(input %x: {0}{1}, input %dy: {0}{3}) {{\n  %dw: {0}{2} = convolution_weight_gradient(%x, %dy) "
      "{{dilations = [1, 1], padding_high = [{5}, {5}], padding_low = [{4}, {4}], strides = [{6}, {6}], "
      "weight_shape = {2}}}\n  output dw = %dw\n}}",
      type, own.x, own.weight, own.y, own.low, own.high, own.stride));
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
