#include "ops/normalization/group_norm_shapes.h"

namespace tessera::ops {
namespace {

std::vector<TensorType> infer_group_norm_gradient(const InferenceCall& call) {
  const TensorType& x = call.input(1);
  const TensorType& scale = call.input(2);
  const TensorType statistics = group_norm_statistics(call, x);
  call.require(call.input(0).shape == x.shape, "output_gradient must be as x");
  check_scale(call, x, scale, {x.shape.back()}, "one number per channel");
  call.require(call.input(3) == statistics && call.input(4) == statistics,
               "mean and inverse_deviation must be " + to_string(statistics));
  return {x, scale, scale};
}

OperatorExample example_group_norm_gradient(Shape x, int64_t groups) {
  const Shape channels{x.back()};
  const Shape statistics{x.front(), groups};
  return {.inputs = {{x}, {x, -2, 2}, {channels, 0.5, 2}, {statistics}, {statistics, 0.5, 2}},
          .attributes = {{"groups", groups}}};
}

const OperatorRegistration kRegistration({
    .name = "group_norm_gradient",
    .documentation =
        "The gradients of group_norm to x, scale and bias, from that of y and the statistics it found.",
    .operator_class = OperatorClass::normalization,
    .traits = {.low_precision = LowPrecision::follows},
    .inputs = {{.name = "output_gradient"},
               {.name = "x"},
               {.name = "scale", .types = kStatisticsTypes, .type_variable = "S"},
               {.name = "mean", .types = kStatisticsTypes, .type_variable = "S"},
               {.name = "inverse_deviation", .types = kStatisticsTypes, .type_variable = "S"}},
    .attributes = {group_norm_groups_attribute()},
    .outputs = {"input_gradient", "scale_gradient", "bias_gradient"},
    .infer = infer_group_norm_gradient,
    .flops =
        [](const Node& node) { return 11.0 * static_cast<double>(node.input(0)->type().element_count()); },
    .reference =
        [](const ReferenceCall& call) {
          run_normalization_gradient(
              call, group_norm_groups(call.inputs[1]->shape(), call.attributes().integer("groups")),
              call.inputs[3]->to_doubles(), call.inputs[4]->to_doubles());
        },
    .examples = {example_group_norm_gradient({2, 3, 5, 6}, 3), example_group_norm_gradient({2, 5, 4}, 4),
                 example_group_norm_gradient({3, 8}, 2)},
});

}  // namespace
}  // namespace tessera::ops
