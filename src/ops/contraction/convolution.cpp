#include <fmt/format.h>

#include "ops/contraction/convolution_shapes.h"
#include "ops/contraction/factors.h"

namespace tessera::ops {
namespace {

std::vector<TensorType> infer_convolution(const InferenceCall& call) {
  SymbolicShape shape = convolution_result(call.input(0).shape, call.input(1).shape, call.attributes);
  const DataType type = type_of_sums(call);
  if (call.inputs.size() > 2) {
    const TensorType& bias = call.input(2);
    call.require(bias.data_type == type, fmt::format("input 'bias' is {} where the sums are {}",
                                                     to_string(bias.data_type), to_string(type)));
    call.require(bias.shape == SymbolicShape{shape.back()}, "bias must be [K]");
  }
  return {{type, std::move(shape)}};
}

std::vector<Value*> gradient_convolution(const GradientCall& call) {
  Value* x = call.input(0);
  Value* weight = call.input(1);
  Value* dy = call.gradient();
  const ConvolutionOptions options = convolution_options(call.node.attributes());
  std::vector<Value*> gradients{convolution_data_gradient(dy, weight, x->shape(), options),
                                convolution_weight_gradient(x, dy, weight->shape(), options)};
  if (call.node.inputs().size() > 2) {
    std::vector<int64_t> axes;
    for (int64_t axis = 0; axis + 1 < dy->type().rank(); ++axis) axes.push_back(axis);
    gradients.push_back(reduce_sum(dy, {.axes = axes}));
  }
  return gradients;
}

void reference_convolution(const ReferenceCall& call) {
  const std::vector<double> x = call.inputs[0]->to_doubles();
  const std::vector<double> weight = call.inputs[1]->to_doubles();
  Tensor& y = *call.outputs[0];
  std::vector<double> sums(static_cast<size_t>(y.size()), 0);
  if (call.inputs.size() > 2) {
    const std::vector<double> bias = call.inputs[2]->to_doubles();
    for (size_t i = 0; i < sums.size(); ++i) sums[i] = bias[i % bias.size()];
  }
  walk_convolution(call.inputs[0]->shape(), call.inputs[1]->shape(), y.shape(), call.attributes(),
                   [&](size_t i, size_t j, size_t k) { sums[k] += x[i] * weight[j]; });
  y = Tensor::from_doubles(y.data_type(), y.shape(), sums);
}

std::vector<OperatorExample> examples_convolution() {
  std::vector<OperatorExample> result;
  const std::vector<ConvolutionCase> cases = convolution_cases();
  for (const ConvolutionCase& c : cases)
    result.push_back({.inputs = {{c.x}, {c.weight}}, .attributes = c.attributes});
  const ConvolutionCase& first = cases.front();
  result.push_back(
      {.inputs = {{first.x}, {first.weight}, {{first.weight[0]}}}, .attributes = first.attributes});
  constexpr double kMost = 9;
  const auto add_bytes = [&](const ConvolutionCase& c, DataType x, DataType weight) {
    result.push_back(
        {.inputs = {{c.x, -kMost, kMost, x}, {c.weight, -kMost, kMost, weight}}, .attributes = c.attributes});
  };
  add_bytes(cases[2], DataType::uint8, DataType::int8);
  add_bytes(cases[3], DataType::int8, DataType::int8);
  add_bytes(cases[4], DataType::int8, DataType::uint8);
  add_bytes(cases[8], DataType::uint8, DataType::uint8);
  add_bytes(first, DataType::uint8, DataType::int8);
  result.back().inputs.push_back({{first.weight[0]}, -kMost, kMost, DataType::int32});
  return result;
}

const OperatorRegistration kRegistration({
    .name = "convolution",
    .documentation =
        "Convolution (cross-correlation) over one to three spatial axes. x: [N, spatial..., "
        "C], weight: [K, spatial..., C/groups], bias, if given: [K], y: [N, spatial..., K]. "
        "Each spatial extent of y is floor((extent + padding_low + padding_high - dilation * "
        "(window - 1) - 1) / stride) + 1. Models add the bias by an operator of its own; the "
        "third input is for importers and fused bodies. Of int8 and uint8, which may meet, the sums are "
        "int32, exactly, and so is the bias; they must stay within its limits.",
    .operator_class = OperatorClass::contraction,
    .inputs = {{.name = "x", .types = kFactorTypes, .type_variable = ""},
               {.name = "weight", .types = kFactorTypes, .type_variable = ""},
               {.name = "bias",
                .types = kFloatingTypes | TypeSet{DataType::int32},
                .type_variable = "",
                .optional = true}},
    .attributes = convolution_attribute_list(),
    .outputs = {"y"},
    .infer = infer_convolution,
    .gradient = gradient_convolution,
    .flops =
        [](const Node& node) {
          return convolution_flops(node.input(1)->type().static_shape(),
                                   node.output()->type().static_shape());
        },
    .reference = reference_convolution,
    .examples = examples_convolution(),
});

}  // namespace
}  // namespace tessera::ops
