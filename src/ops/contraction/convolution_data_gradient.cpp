#include "ops/contraction/convolution_shapes.h"

namespace tessera::ops {
namespace {

std::vector<TensorType> infer_convolution_data_gradient(const InferenceCall& call) {
  const SymbolicShape& shape = call.attributes.shape("input_shape");
  const SymbolicShape result = convolution_result(shape, call.input(1).shape, call.attributes);
  call.require(call.input(0).shape == result, "the convolution of input_shape " + to_string(shape) +
                                                  " makes " + to_string(result) +
                                                  ", which output_gradient must be");
  return {{call.input(0).data_type, shape}};
}

// dx is linear in dy and in the weight: <g, dx> = <convolution(g, weight), dy>.
std::vector<Value*> gradient_convolution_data_gradient(const GradientCall& call) {
  Value* dy = call.input(0);
  Value* weight = call.input(1);
  const ConvolutionOptions options = convolution_options(call.node.attributes());
  return {convolution(call.gradient(), weight, options),
          convolution_weight_gradient(call.gradient(), dy, weight->shape(), options)};
}

void reference_convolution_data_gradient(const ReferenceCall& call) {
  const std::vector<double> dy = call.inputs[0]->to_doubles();
  const std::vector<double> weight = call.inputs[1]->to_doubles();
  Tensor& dx = *call.outputs[0];
  std::vector<double> sums(static_cast<size_t>(dx.size()), 0);
  walk_convolution(dx.shape(), call.inputs[1]->shape(), call.inputs[0]->shape(), call.attributes(),
                   [&](size_t i, size_t j, size_t k) { sums[i] += dy[k] * weight[j]; });
  dx = Tensor::from_doubles(dx.data_type(), dx.shape(), sums);
}

std::vector<AttributeSpecification> attributes() {
  std::vector<AttributeSpecification> list = convolution_attribute_list();
  list.push_back(
      {"input_shape", AttributeKind::shape, {}, "Shape of the convolution's x, and of the result."});
  return list;
}

std::vector<OperatorExample> examples_convolution_data_gradient() {
  std::vector<OperatorExample> result;
  for (const ConvolutionCase& c : convolution_cases()) {
    Attributes attributes = c.attributes;
    attributes.set("input_shape", to_symbolic(c.x));
    result.push_back({.inputs = {{c.result()}, {c.weight}}, .attributes = std::move(attributes)});
  }
  return result;
}

const OperatorRegistration kRegistration({
    .name = "convolution_data_gradient",
    .documentation = "The gradient of convolution to x, from that of y and the weight: the transposed "
                     "convolution. Several shapes of x can lead to one shape of y, so `input_shape` says "
                     "which.",
    .operator_class = OperatorClass::contraction,
    .inputs = {{.name = "output_gradient"}, {.name = "weight"}},
    .attributes = attributes(),
    .outputs = {"input_gradient"},
    .infer = infer_convolution_data_gradient,
    .gradient = gradient_convolution_data_gradient,
    .flops =
        [](const Node& node) {
          return convolution_flops(node.input(1)->type().static_shape(),
                                   node.input(0)->type().static_shape());
        },
    .reference = reference_convolution_data_gradient,
    .examples = examples_convolution_data_gradient(),
});

}  // namespace
}  // namespace tessera::ops
