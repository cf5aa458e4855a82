// Convolutions of bytes, for every device: also with numbers of which a sum that is rounded to fp32, or that
// is kept in 16 bits, is another.
#pragma once

#include <string>
#include <vector>

#include "tessera/ops/functions.h"

#include "support/device_case.h"

namespace tessera::testing {

struct ByteConvolution {
  std::string name;
  DataType x_type;
  DataType weight_type;
  Shape x;
  Shape weight;
  ops::ConvolutionOptions options = {};
  bool has_bias = false;
};

inline std::vector<ByteConvolution> byte_convolutions() {
  constexpr DataType kSigned = DataType::int8;
  constexpr DataType kUnsigned = DataType::uint8;
  return {
      {"window", kUnsigned, kSigned, {2, 7, 6, 16}, {24, 3, 3, 16}, {.padding_low = {1, 1}}},
      {"deep",
       kUnsigned,
       kSigned,
       {1, 5, 5, 1024},
       {9, 3, 3, 1024},
       {.strides = {2, 2}, .padding_low = {1, 1}}},
      {"pointwise", kUnsigned, kSigned, {2, 5, 5, 64}, {32, 1, 1, 64}},
      {"bias", kUnsigned, kSigned, {1, 6, 5, 16}, {21, 3, 3, 16}, {.padding_low = {1, 0}}, true},
      {"grouped", kUnsigned, kSigned, {1, 8, 8, 12}, {18, 3, 3, 4}, {.strides = {2, 1}, .groups = 3}},
      {"three_axes", kUnsigned, kSigned, {1, 5, 6, 7, 4}, {8, 3, 3, 2, 4}, {.padding_low = {1, 1, 0}}},
      {"beside_image",
       kUnsigned,
       kSigned,
       {1, 1, 1, 16},
       {16, 2, 2, 16},
       {.strides = {3, 3}, .padding_low = {4, 4}}},
      {"both_signed", kSigned, kSigned, {1, 6, 6, 40}, {8, 3, 3, 40}, {.padding_low = {1, 1}}},
      {"both_signed_deep", kSigned, kSigned, {1, 4, 4, 300}, {5, 3, 3, 300}, {.padding_low = {1, 1}}},
      {"both_unsigned",
       kUnsigned,
       kUnsigned,
       {2, 8, 9, 13},
       {70, 2, 3, 13},
       {.padding_low = {2, 0}, .padding_high = {1, 3}, .dilations = {2, 3}}},
      {"one_axis", kUnsigned, kUnsigned, {2, 21, 6}, {10, 5, 6}, {.strides = {2}, .padding_low = {2}}},
      {"pointwise_unsigned_weight", kSigned, kUnsigned, {1, 7, 7, 33}, {65, 1, 1, 33}},
      {"depthwise",
       kSigned,
       kUnsigned,
       {2, 9, 9, 16},
       {16, 3, 3, 1},
       {.strides = {2, 2}, .padding_low = {1, 1}, .groups = 16},
       true},
  };
}

// Random numbers, or the largest products there are.
inline Case case_of(const ByteConvolution& convolution, bool extreme) {
  Case result;
  result.name = convolution.name;
  result.graph = std::make_unique<Graph>(convolution.name);
  Graph& graph = *result.graph;
  const auto input = [&](const std::string& name, DataType type, const Shape& shape) {
    return graph.add_input(InputRole::input, name, {type, to_symbolic(shape)});
  };
  Value* x = input("x", convolution.x_type, convolution.x);
  Value* weight = input("weight", convolution.weight_type, convolution.weight);
  Value* y = ops::convolution(x, weight, convolution.options);
  if (convolution.has_bias) {
    const Attributes attributes = y->producer()->attributes();
    graph.erase(y->producer());
    y = ops::apply("convolution", {x, weight, input("bias", DataType::int32, {convolution.weight[0]})},
                   attributes)
            ->output();
  }
  graph.add_output("y", y);
  uint64_t seed = 1;
  for (const auto& value : graph.inputs()) {
    Tensor tensor = random_tensor(value->data_type(), value->type().static_shape(), -200, 300, ++seed);
    const TypeTraits& traits = traits_of(value->data_type());
    for (int64_t i = 0; i < tensor.size() && extreme; ++i) {
      const int64_t nearly = i % 7 == 0 ? 1 : 0;
      if (value->data_type() == DataType::int32) {
        tensor.set(i, static_cast<double>((1 << 24) + 1 + 2 * i));
      } else if (value.get() == x && traits.lowest < 0) {
        tensor.set(i, traits.lowest + static_cast<double>(nearly));
      } else {
        tensor.set(i, traits.highest - static_cast<double>(nearly));
      }
    }
    result.inputs.push_back(std::move(tensor));
  }
  return result;
}

}  // namespace tessera::testing
