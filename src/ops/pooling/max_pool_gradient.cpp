#include "ops/pooling/pooling.h"

namespace tessera::ops {
namespace {

std::vector<TensorType> infer_max_pool_gradient(const InferenceCall& call) {
  const SymbolicShape& shape = call.attributes.shape("input_shape");
  const SymbolicShape result = pool_result(shape, call.attributes);
  call.require(call.input(0).shape == result && call.input(1).shape == result,
               "pooling input_shape " + to_string(shape) + " makes " + to_string(result) +
                   ", which output_gradient and position must be");
  return {{call.input(0).data_type, shape}};
}

void reference_max_pool_gradient(const ReferenceCall& call) {
  const std::vector<double> dy = call.inputs[0]->to_doubles();
  const auto position = call.inputs[1]->data<uint8_t>();
  Tensor& dx = *call.outputs[0];
  std::vector<double> sums(static_cast<size_t>(dx.size()), 0);
  walk_pool(dx.shape(), call.inputs[0]->shape(), call.attributes(), [&](size_t y, int64_t tap, size_t i) {
    if (tap == position[y]) sums[i] += dy[y];
  });
  dx = Tensor::from_doubles(dx.data_type(), dx.shape(), sums);
}

std::vector<OperatorExample> examples_max_pool_gradient() {
  std::vector<OperatorExample> result;
  for (const PoolCase& c : pool_cases()) {
    Attributes attributes = c.attributes;
    attributes.set("input_shape", to_symbolic(c.x));
    const auto last = static_cast<double>(element_count(c.attributes.integers("window")) - 1);
    result.push_back({.inputs = {{c.result()}, {c.result(), 0, last, DataType::uint8}},
                      .attributes = std::move(attributes)});
  }
  return result;
}

const OperatorRegistration kRegistration({
    .name = "max_pool_gradient",
    .documentation = "The gradient of max_pool to x: every element of output_gradient goes to where its "
                     "window's largest element stood, as `position` says; a position in the padding is "
                     "dropped.",
    .operator_class = OperatorClass::pooling,
    .traits = {.low_precision = LowPrecision::follows},
    .inputs = {{.name = "output_gradient"},
               {.name = "position", .types = {DataType::uint8}, .type_variable = ""}},
    .attributes = pool_gradient_attribute_list(),
    .outputs = {"input_gradient"},
    .infer = infer_max_pool_gradient,
    .flops = [](const Node& node) { return static_cast<double>(node.input(0)->type().element_count()); },
    .reference = reference_max_pool_gradient,
    .examples = examples_max_pool_gradient(),
});

}  // namespace
}  // namespace tessera::ops
