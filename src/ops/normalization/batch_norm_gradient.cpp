#include <cmath>

#include "ops/normalization/normalization.h"

namespace tessera::ops {
namespace {

std::vector<TensorType> infer_batch_norm_gradient(const InferenceCall& call) {
  const TensorType& x = call.input(1);
  call.require(x.rank() >= 2, "x must be [N, ..., C]");
  call.require(call.input(0).shape == x.shape, "output_gradient must be as x");
  const TensorType& scale = call.input(2);
  check_scale(call, x, scale, {x.shape.back()}, "one number per channel");
  call.require(call.input(3).shape == scale.shape && call.input(4).shape == scale.shape,
               "mean and variance must be as scale");
  return {x, scale, scale};
}

void reference_batch_norm_gradient(const ReferenceCall& call) {
  std::vector<double> inverse = call.inputs[4]->to_doubles();
  for (double& value : inverse) value = 1 / std::sqrt(value + call.attributes().real("epsilon"));
  run_normalization_gradient(call, batch_norm_groups(call.inputs[1]->shape()), call.inputs[3]->to_doubles(),
                             inverse);
}

OperatorExample example_batch_norm_gradient(Shape x) {
  const int64_t channels = x.back();
  return {.inputs = {{x}, {x, -2, 2}, {{channels}, 0.5, 2}, {{channels}}, {{channels}, 0.5, 2}}};
}

const OperatorRegistration kRegistration({
    .name = "batch_norm_gradient",
    .documentation = "The gradients of batch_norm_training to x, scale and bias, from that of y and the "
                     "batch's mean and variance.",
    .operator_class = OperatorClass::normalization,
    .traits = {.low_precision = LowPrecision::follows},
    .inputs = {{.name = "output_gradient"},
               {.name = "x"},
               {.name = "scale", .types = kStatisticsTypes, .type_variable = "S"},
               {.name = "mean", .types = kStatisticsTypes, .type_variable = "S"},
               {.name = "variance", .types = kStatisticsTypes, .type_variable = "S"}},
    .attributes = {epsilon_attribute()},
    .outputs = {"input_gradient", "scale_gradient", "bias_gradient"},
    .infer = infer_batch_norm_gradient,
    .flops =
        [](const Node& node) { return 11.0 * static_cast<double>(node.input(0)->type().element_count()); },
    .reference = reference_batch_norm_gradient,
    .examples = {example_batch_norm_gradient({4, 3, 5, 7}), example_batch_norm_gradient({13, 5}),
                 example_batch_norm_gradient({2, 2, 3, 2, 33})},
});

}  // namespace
}  // namespace tessera::ops
