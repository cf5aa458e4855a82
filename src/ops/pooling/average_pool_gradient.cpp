#include "ops/pooling/pooling.h"

namespace tessera::ops {
namespace {

std::vector<TensorType> infer_average_pool_gradient(const InferenceCall& call) {
  const SymbolicShape& shape = call.attributes.shape("input_shape");
  const SymbolicShape result = pool_result(shape, call.attributes);
  call.require(call.input(0).shape == result, "pooling input_shape " + to_string(shape) + " makes " +
                                                  to_string(result) + ", which output_gradient must be");
  return {{call.input(0).data_type, shape}};
}

// The transpose of a linear map has the map as its own gradient.
std::vector<Value*> gradient_average_pool_gradient(const GradientCall& call) {
  return {average_pool(call.gradient(), pool_options(call.node.attributes()))};
}

void reference_average_pool_gradient(const ReferenceCall& call) {
  const std::vector<double> dy = call.inputs[0]->to_doubles();
  Tensor& dx = *call.outputs[0];
  const Shape& shape = call.inputs[0]->shape();
  const std::vector<double> divisors = average_pool_divisors(dx.shape(), shape, call.attributes());
  std::vector<double> sums(static_cast<size_t>(dx.size()), 0);
  walk_pool(dx.shape(), shape, call.attributes(),
            [&](size_t y, int64_t, size_t i) { sums[i] += dy[y] / divisors[y]; });
  dx = Tensor::from_doubles(dx.data_type(), dx.shape(), sums);
}

std::vector<AttributeSpecification> attributes() {
  std::vector<AttributeSpecification> list = pool_gradient_attribute_list();
  list.push_back({"count_padding", AttributeKind::boolean, true, "As of average_pool."});
  return list;
}

std::vector<OperatorExample> examples_average_pool_gradient() {
  std::vector<OperatorExample> result;
  for (const bool count_padding : {true, false}) {
    for (const PoolCase& c : pool_cases()) {
      Attributes attributes = c.attributes;
      attributes.set("count_padding", count_padding);
      attributes.set("input_shape", to_symbolic(c.x));
      result.push_back({.inputs = {{c.result()}}, .attributes = std::move(attributes)});
    }
  }
  return result;
}

const OperatorRegistration kRegistration({
    .name = "average_pool_gradient",
    .documentation = "The gradient of average_pool to x: each element of output_gradient, divided as there, "
                     "is added to all of its window.",
    .operator_class = OperatorClass::pooling,
    .traits = {.low_precision = LowPrecision::follows},
    .inputs = {{.name = "output_gradient"}},
    .attributes = attributes(),
    .outputs = {"input_gradient"},
    .infer = infer_average_pool_gradient,
    .gradient = gradient_average_pool_gradient,
    .flops =
        [](const Node& node) { return pool_flops(node.input(0)->type().static_shape(), node.attributes()); },
    .reference = reference_average_pool_gradient,
    .examples = examples_average_pool_gradient(),
});

}  // namespace
}  // namespace tessera::ops
