#include "ops/pooling/pooling.h"

namespace tessera::ops {
namespace {

std::vector<TensorType> infer_average_pool(const InferenceCall& call) {
  return {{call.input(0).data_type, pool_result(call.input(0).shape, call.attributes)}};
}

std::vector<Value*> gradient_average_pool(const GradientCall& call) {
  return {
      average_pool_gradient(call.gradient(), call.input(0)->shape(), pool_options(call.node.attributes()))};
}

void reference_average_pool(const ReferenceCall& call) {
  const std::vector<double> x = call.inputs[0]->to_doubles();
  const Shape& shape = call.outputs[0]->shape();
  const std::vector<double> divisors =
      average_pool_divisors(call.inputs[0]->shape(), shape, call.attributes());
  std::vector<double> sums(divisors.size(), 0);
  walk_pool(call.inputs[0]->shape(), shape, call.attributes(),
            [&](size_t y, int64_t, size_t i) { sums[y] += x[i]; });
  for (size_t i = 0; i < sums.size(); ++i) sums[i] /= divisors[i];
  *call.outputs[0] = Tensor::from_doubles(call.outputs[0]->data_type(), shape, sums);
}

std::vector<AttributeSpecification> attributes() {
  std::vector<AttributeSpecification> list = pool_attribute_list();
  list.push_back({"count_padding", AttributeKind::boolean, true,
                  "Divide by the window's size, not by how much of it is inside the image."});
  return list;
}

std::vector<OperatorExample> examples_average_pool() {
  std::vector<OperatorExample> result;
  for (const bool count_padding : {true, false}) {
    for (const PoolCase& c : pool_cases()) {
      Attributes attributes = c.attributes;
      attributes.set("count_padding", count_padding);
      result.push_back({.inputs = {{c.x}}, .attributes = std::move(attributes)});
    }
  }
  return result;
}

const OperatorRegistration kRegistration({
    .name = "average_pool",
    .documentation = "Mean of each window over the spatial axes of x: [N, spatial..., C]. Padding counts as "
                     "zeros, or, without `count_padding`, not at all. Padding is less than the window.",
    .operator_class = OperatorClass::pooling,
    .traits = {.low_precision = LowPrecision::follows},
    .inputs = {{.name = "x"}},
    .attributes = attributes(),
    .outputs = {"y"},
    .infer = infer_average_pool,
    .gradient = gradient_average_pool,
    .flops =
        [](const Node& node) { return pool_flops(node.output()->type().static_shape(), node.attributes()); },
    .reference = reference_average_pool,
    .examples = examples_average_pool(),
});

}  // namespace
}  // namespace tessera::ops
