// Convolutions of two spatial axes, of any type, as cases of tests.
#pragma once

#include <bit>
#include <memory>
#include <string>
#include <vector>

#include <fmt/format.h>

#include "tessera/graph/graph.h"

#include "passes/run_pass.h"

namespace tessera::testing {

struct ConvolutionCase {
  std::string name;
  std::string x, weight, y;
  int64_t stride, low, high;  // padding
};

inline std::unique_ptr<Graph> gradient_of(const ConvolutionCase& own, const std::string& type) {
  return parse_graph(fmt::format(
      "graph g(input %x: {0}{1}, input %dy: {0}{3}) {{\n  %dw: {0}{2} = convolution_weight_gradient(%x, %dy) "
      "{{dilations = [1, 1], padding_high = [{5}, {5}], padding_low = [{4}, {4}], strides = [{6}, {6}], "
      "weight_shape = {2}}}\n  output dw = %dw\n}}",
      type, own.x, own.weight, own.y, own.low, own.high, own.stride));
}

// The number of TF32 that is nearest; of two the greater in size.
inline Tensor rounded_to_tf32(const Tensor& tensor) {
  Tensor result(tensor.data_type(), tensor.shape());
  for (int64_t i = 0; i < tensor.size(); ++i) {
    const auto bits = std::bit_cast<uint32_t>(static_cast<float>(tensor.at(i)));
    result.set(i, std::bit_cast<float>((bits + 0x1000U) & ~0x1fffU));
  }
  return result;
}

// Weights whose last bits a device rounds away are off by the same in each term of what it sums over pixels.
inline std::vector<Tensor> with_exact_weights(const Node& node, std::vector<Tensor> inputs) {
  for (size_t i = 0; i < inputs.size(); ++i) {
    if (node.input(i)->name() == "weight" && inputs[i].data_type() == DataType::fp32)
      inputs[i] = rounded_to_tf32(inputs[i]);
  }
  return inputs;
}

// Those in fp32 are numbers of TF32, so that their products are exact.
inline std::vector<Tensor> exact_inputs(const Graph& graph) {
  std::vector<Tensor> inputs = graph_inputs(graph);
  for (Tensor& input : inputs) {
    if (input.data_type() == DataType::fp32) input = rounded_to_tf32(input);
  }
  return inputs;
}

}  // namespace tessera::testing
