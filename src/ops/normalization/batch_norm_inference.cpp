#include <cmath>

#include "ops/normalization/normalization.h"

namespace tessera::ops {
namespace {

std::vector<TensorType> infer_batch_norm_inference(const InferenceCall& call) {
  const TensorType& x = call.input(0);
  call.require(x.rank() >= 2, "x must be [N, ..., C]");
  const SymbolicShape channels{x.shape.back()};
  check_scale(call, x, call.input(1), channels, "one number per channel");
  for (size_t i = 2; i < 5; ++i)
    call.require(call.input(i).shape == channels, "bias, mean and variance must be as scale");
  return {x};
}

// Two numbers per channel first, then one multiplication and one addition per element.
std::vector<Value*> decompose_batch_norm_inference(const Node& node, std::span<Value* const> inputs) {
  Value* deviation = sqrt(add(inputs[4], node.attributes().real("epsilon")));
  Value* factor = divide(inputs[1], deviation);
  Value* offset = subtract(inputs[2], multiply(inputs[3], factor));
  Value* y = add(multiply(cast(inputs[0], factor->data_type()), factor), offset);
  return {cast(y, inputs[0]->data_type())};
}

void reference_batch_norm_inference(const ReferenceCall& call) {
  const std::vector<double> x = call.inputs[0]->to_doubles();
  const int64_t channels = call.inputs[0]->shape().back();
  const double epsilon = call.attributes().real("epsilon");
  for (size_t i = 0; i < x.size(); ++i) {
    const int64_t c = static_cast<int64_t>(i) % channels;
    const double deviation = std::sqrt(call.inputs[4]->at(c) + epsilon);
    call.outputs[0]->set(
        static_cast<int64_t>(i),
        (x[i] - call.inputs[3]->at(c)) / deviation * call.inputs[1]->at(c) + call.inputs[2]->at(c));
  }
}

OperatorExample example_batch_norm_inference(Shape x) {
  const int64_t channels = x.back();
  return {.inputs = {
              {std::move(x), -2, 2}, {{channels}, 0.5, 2}, {{channels}}, {{channels}}, {{channels}, 0.5, 2}}};
}

const OperatorRegistration kRegistration({
    .name = "batch_norm_inference",
    .documentation = "y = (x - mean) / sqrt(variance + epsilon) * scale + bias with statistics that are "
                     "given. x: [N, ..., C], all else [C]; beside a 16-bit x these stay fp32.",
    .operator_class = OperatorClass::elementwise,
    .traits = {.low_precision = LowPrecision::follows},
    .inputs = {{.name = "x"},
               {.name = "scale", .types = kStatisticsTypes, .type_variable = "S"},
               {.name = "bias", .types = kStatisticsTypes, .type_variable = "S"},
               {.name = "mean", .types = kStatisticsTypes, .type_variable = "S"},
               {.name = "variance", .types = kStatisticsTypes, .type_variable = "S"}},
    .attributes = {epsilon_attribute()},
    .outputs = {"y"},
    .infer = infer_batch_norm_inference,
    .flops =
        [](const Node& node) { return 2.0 * static_cast<double>(node.input(0)->type().element_count()); },
    .reference = reference_batch_norm_inference,
    .examples = {example_batch_norm_inference({4, 3, 5, 7}), example_batch_norm_inference({13, 5}),
                 example_batch_norm_inference({2, 2, 3, 2, 33})},
    .decompose = decompose_batch_norm_inference,
});

}  // namespace
}  // namespace tessera::ops
