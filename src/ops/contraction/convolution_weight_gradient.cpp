#include "ops/contraction/convolution_shapes.h"

namespace tessera::ops {
namespace {

std::vector<TensorType> infer_convolution_weight_gradient(const InferenceCall& call) {
  const SymbolicShape& shape = call.attributes.shape("weight_shape");
  const SymbolicShape result = convolution_result(call.input(0).shape, shape, call.attributes);
  call.require(call.input(1).shape == result, "the convolution with weight_shape " + to_string(shape) +
                                                  " makes " + to_string(result) +
                                                  ", which output_gradient must be");
  return {{call.input(0).data_type, shape}};
}

// dw is linear in x and in dy: <g, dw> = <convolution(x, g), dy>.
std::vector<Value*> gradient_convolution_weight_gradient(const GradientCall& call) {
  Value* x = call.input(0);
  Value* dy = call.input(1);
  const ConvolutionOptions options = convolution_options(call.node.attributes());
  return {convolution_data_gradient(dy, call.gradient(), x->shape(), options),
          convolution(x, call.gradient(), options)};
}

void reference_convolution_weight_gradient(const ReferenceCall& call) {
  const std::vector<double> x = call.inputs[0]->to_doubles();
  const std::vector<double> dy = call.inputs[1]->to_doubles();
  Tensor& dw = *call.outputs[0];
  std::vector<double> sums(static_cast<size_t>(dw.size()), 0);
  walk_convolution(call.inputs[0]->shape(), dw.shape(), call.inputs[1]->shape(), call.attributes(),
                   [&](size_t i, size_t j, size_t k) { sums[j] += x[i] * dy[k]; });
  dw = Tensor::from_doubles(dw.data_type(), dw.shape(), sums);
}

std::vector<AttributeSpecification> attributes() {
  std::vector<AttributeSpecification> list = convolution_attribute_list();
  list.push_back({"weight_shape", AttributeKind::shape, {}, "Shape of the weight, and of the result."});
  return list;
}

std::vector<OperatorExample> examples_convolution_weight_gradient() {
  std::vector<OperatorExample> result;
  for (const ConvolutionCase& c : convolution_cases()) {
    Attributes attributes = c.attributes;
    attributes.set("weight_shape", to_symbolic(c.weight));
    result.push_back({.inputs = {{c.x}, {c.result()}}, .attributes = std::move(attributes)});
  }
  return result;
}

const OperatorRegistration kRegistration({
    .name = "convolution_weight_gradient",
    .documentation = "The gradient of convolution to the weight, from x and the gradient of y. "
                     "`weight_shape` says how large the window is, which strides would leave open.",
    .operator_class = OperatorClass::contraction,
    .inputs = {{.name = "x"}, {.name = "output_gradient"}},
    .attributes = attributes(),
    .outputs = {"weight_gradient"},
    .infer = infer_convolution_weight_gradient,
    .gradient = gradient_convolution_weight_gradient,
    .flops =
        [](const Node& node) {
          return convolution_flops(node.output()->type().static_shape(),
                                   node.input(1)->type().static_shape());
        },
    .reference = reference_convolution_weight_gradient,
    .examples = examples_convolution_weight_gradient(),
});

}  // namespace
}  // namespace tessera::ops
