#include "ops/contraction/convolution_shapes.h"

namespace tessera::ops {
namespace {

std::vector<TensorType> infer_convolution(const InferenceCall& call) {
  SymbolicShape shape = convolution_result(call.input(0).shape, call.input(1).shape, call.attributes);
  if (call.inputs.size() > 2)
    call.require(call.input(2).shape == SymbolicShape{shape.back()}, "bias must be [K]");
  return {{call.input(0).data_type, std::move(shape)}};
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
  for (const ConvolutionCase& c : convolution_cases())
    result.push_back({.inputs = {{c.x}, {c.weight}}, .attributes = c.attributes});
  const ConvolutionCase first = convolution_cases().front();
  result.push_back(
      {.inputs = {{first.x}, {first.weight}, {{first.weight[0]}}}, .attributes = first.attributes});
  return result;
}

const OperatorRegistration kRegistration({
    .name = "convolution",
    .documentation = "Convolution (cross-correlation) over one to three spatial axes. x: [N, spatial..., "
                     "C], weight: [K, spatial..., C/groups], bias, if given: [K], y: [N, spatial..., K]. "
                     "Each spatial extent of y is floor((extent + padding_low + padding_high - dilation * "
                     "(window - 1) - 1) / stride) + 1. Models add the bias by an operator of its own; the "
                     "third input is for importers and fused bodies.",
    .operator_class = OperatorClass::contraction,
    .inputs = {{.name = "x"}, {.name = "weight"}, {.name = "bias", .optional = true}},
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
