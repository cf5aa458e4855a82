#include <cmath>

#include "ops/pooling/pooling.h"

namespace tessera::ops {
namespace {

std::vector<TensorType> infer_max_pool(const InferenceCall& call) {
  const SymbolicShape shape = pool_result(call.input(0).shape, call.attributes);
  call.require(element_count(call.attributes.integers("window")) <= 255,
               "the window must have at most 255 elements, so that a position fits in uint8");
  return {{call.input(0).data_type, shape}, {DataType::uint8, shape}};
}

std::vector<Value*> gradient_max_pool(const GradientCall& call) {
  return {max_pool_gradient(call.gradient(), call.output(1), call.input(0)->shape(),
                            pool_options(call.node.attributes()))};
}

void reference_max_pool(const ReferenceCall& call) {
  const std::vector<double> x = call.inputs[0]->to_doubles();
  const Shape& shape = call.outputs[0]->shape();
  std::vector<double> best(static_cast<size_t>(element_count(shape)));
  std::vector<double> position(best.size(), -1);
  walk_pool(call.inputs[0]->shape(), shape, call.attributes(), [&](size_t y, int64_t tap, size_t i) {
    if (position[y] < 0 || x[i] > best[y] || (std::isnan(x[i]) && !std::isnan(best[y]))) {
      best[y] = x[i];
      position[y] = static_cast<double>(tap);
    }
  });
  *call.outputs[0] = Tensor::from_doubles(call.outputs[0]->data_type(), shape, best);
  *call.outputs[1] = Tensor::from_doubles(DataType::uint8, shape, position);
}

std::vector<OperatorExample> examples_max_pool() {
  std::vector<OperatorExample> result;
  for (const PoolCase& c : pool_cases()) result.push_back({.inputs = {{c.x}}, .attributes = c.attributes});
  const PoolCase first = pool_cases().front();
  result.push_back({.inputs = {{first.x, -9, 9, DataType::int8}}, .attributes = first.attributes});
  return result;
}

const OperatorRegistration kRegistration({
    .name = "max_pool",
    .documentation = "Largest element of each window over the spatial axes of x: [N, spatial..., C]; "
                     "padding counts as -infinity, a NaN as larger than every number. `position` says where "
                     "in the window, row-major, the first of the largest stood; the gradient goes there. A "
                     "window has at most 255 elements, padding is less than the window.",
    .operator_class = OperatorClass::pooling,
    .traits = {.low_precision = LowPrecision::follows},
    .inputs = {{.name = "x", .types = kNumericTypes}},
    .attributes = pool_attribute_list(),
    .outputs = {"y", "position"},
    .infer = infer_max_pool,
    .gradient = gradient_max_pool,
    .flops =
        [](const Node& node) { return pool_flops(node.output()->type().static_shape(), node.attributes()); },
    .reference = reference_max_pool,
    .examples = examples_max_pool(),
});

}  // namespace
}  // namespace tessera::ops
