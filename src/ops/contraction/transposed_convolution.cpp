#include "ops/contraction/convolution_shapes.h"

namespace tessera::ops {
namespace {

// The shape of the image whose convolution with the weight has the shape of x.
SymbolicShape image_shape(const SymbolicShape& x, const SymbolicShape& weight, const Attributes& attributes) {
  const WindowOptions windows = convolution_windows(weight, attributes);
  const std::vector<int64_t>& extra = attributes.integers("output_padding");
  SymbolicShape result{x[0]};
  for (size_t axis = 0; axis < windows.window.size(); ++axis) {
    result.push_back((x[axis + 1] - 1) * windows.strides[axis] + window_reach(windows, axis) + extra[axis] -
                     windows.padding_low[axis] - windows.padding_high[axis]);
  }
  result.push_back(weight.back() * attributes.integer("groups"));
  return result;
}

std::vector<TensorType> infer_transposed_convolution(const InferenceCall& call) {
  const SymbolicShape& x = call.input(0).shape;
  const SymbolicShape& weight = call.input(1).shape;
  call.require(x.size() >= 3 && x.size() <= 5, "x must be [N, spatial..., K] with one to three spatial axes");
  call.require(weight.size() == x.size(),
               "weight must be [K, spatial..., C/groups] with as many spatial axes as x");
  call.require(x.back() == weight[0],
               "x has " + x.back().to_string() + " channels, weight is for " + weight[0].to_string());
  check_windows(convolution_windows(weight, call.attributes), static_cast<int64_t>(x.size()) - 2);
  const std::vector<int64_t>& extra = call.attributes.integers("output_padding");
  const std::vector<int64_t>& strides = call.attributes.integers("strides");
  call.require(extra.size() == strides.size(), "output_padding must have one number for each spatial axis");
  for (size_t axis = 0; axis < extra.size(); ++axis) {
    call.require(extra[axis] >= 0 && extra[axis] < strides[axis],
                 "output_padding must be at least 0 and less than the stride");
  }
  SymbolicShape result = image_shape(x, weight, call.attributes);
  for (const Dimension& extent : result)
    call.require(!extent.is_static() || extent.value() >= 0, "padding takes away more than there is");
  call.require(convolution_result(result, weight, call.attributes) == x, "no convolution makes such an x");
  return {{call.input(0).data_type, std::move(result)}};
}

std::vector<Value*> decompose_transposed_convolution(const Node& node, std::span<Value* const> inputs) {
  return {convolution_data_gradient(inputs[0], inputs[1],
                                    image_shape(inputs[0]->shape(), inputs[1]->shape(), node.attributes()),
                                    convolution_options(node.attributes()))};
}

std::vector<AttributeSpecification> attributes() {
  std::vector<AttributeSpecification> list = convolution_attribute_list();
  list.push_back({"output_padding",
                  AttributeKind::integers,
                  {},
                  "Rows added at the end of each spatial axis of the result."});
  return list;
}

OperatorExample example_transposed_convolution(Shape x, Shape weight, std::vector<int64_t> strides,
                                               std::vector<int64_t> padding, std::vector<int64_t> dilations,
                                               std::vector<int64_t> output_padding, int64_t groups) {
  return {.inputs = {{std::move(x)}, {std::move(weight)}},
          .attributes = {{"strides", std::move(strides)},
                         {"padding_low", padding},
                         {"padding_high", padding},
                         {"dilations", std::move(dilations)},
                         {"output_padding", std::move(output_padding)},
                         {"groups", groups}}};
}

const OperatorRegistration kRegistration({
    .name = "transposed_convolution",
    .documentation = "The transpose of convolution as a linear map, which enlarges images. x: [N, "
                     "spatial..., K], weight: [K, spatial..., C/groups], as of the convolution that it "
                     "transposes, y: [N, spatial..., C]. Each spatial extent of y is (extent - 1) * stride "
                     "+ dilation * (window - 1) + 1 + output_padding - padding_low - padding_high.",
    .operator_class = OperatorClass::contraction,
    .inputs = {{.name = "x"}, {.name = "weight"}},
    .attributes = attributes(),
    .outputs = {"y"},
    .infer = infer_transposed_convolution,
    .flops =
        [](const Node& node) {
          return convolution_flops(node.input(1)->type().static_shape(),
                                   node.input(0)->type().static_shape());
        },
    .examples = {example_transposed_convolution({2, 3, 4, 3}, {3, 3, 3, 2}, {2, 2}, {1, 1}, {1, 1}, {1, 0},
                                                1),
                 example_transposed_convolution({1, 3, 3, 4}, {4, 2, 2, 3}, {2, 2}, {0, 0}, {1, 1}, {0, 0},
                                                2),
                 example_transposed_convolution({2, 5, 2}, {2, 3, 3}, {3}, {2}, {2}, {2}, 1),
                 example_transposed_convolution({1, 2, 3, 2, 2}, {2, 2, 2, 3, 1}, {1, 2, 2}, {0, 1, 0},
                                                {1, 1, 1}, {0, 1, 1}, 1)},
    .decompose = decompose_transposed_convolution,
});

}  // namespace
}  // namespace tessera::ops
