#include "ops/normalization/layer_norm_shapes.h"

namespace tessera::ops {
namespace {

std::vector<TensorType> infer_layer_norm_gradient(const InferenceCall& call) {
  const TensorType& x = call.input(1);
  const TensorType& scale = call.input(2);
  const TensorType statistics = layer_norm_statistics(call, x);
  call.require(call.input(0).shape == x.shape, "output_gradient must be as x");
  check_scale(call, x, scale, layer_norm_row(call, x), "one number per element of a row");
  call.require(call.input(3) == statistics && call.input(4) == statistics,
               "mean and inverse_deviation must be " + to_string(statistics));
  return {x, scale, scale};
}

OperatorExample example_layer_norm_gradient(Shape x, int64_t axes, bool centered = true) {
  const Shape row(x.end() - axes, x.end());
  const Shape rows(x.begin(), x.end() - axes);
  return {.inputs = {{x}, {x, -2, 2}, {row, 0.5, 2}, {rows}, {rows, 0.5, 2}},
          .attributes = {{"axes", axes}, {"centered", centered}}};
}

const OperatorRegistration kRegistration({
    .name = "layer_norm_gradient",
    .documentation =
        "The gradients of layer_norm to x, scale and bias, from that of y and the statistics it found; not "
        "centered, the mean is not read.",
    .operator_class = OperatorClass::normalization,
    .traits = {.low_precision = LowPrecision::follows},
    .inputs = {{.name = "output_gradient"},
               {.name = "x"},
               {.name = "scale", .types = kStatisticsTypes, .type_variable = "S"},
               {.name = "mean", .types = kStatisticsTypes, .type_variable = "S"},
               {.name = "inverse_deviation", .types = kStatisticsTypes, .type_variable = "S"}},
    .attributes = {layer_norm_axes(), layer_norm_centered()},
    .outputs = {"input_gradient", "scale_gradient", "bias_gradient"},
    .infer = infer_layer_norm_gradient,
    .flops =
        [](const Node& node) { return 11.0 * static_cast<double>(node.input(0)->type().element_count()); },
    .reference =
        [](const ReferenceCall& call) {
          run_normalization_gradient(
              call, layer_norm_groups(call.inputs[1]->shape(), call.attributes().integer("axes")),
              call.inputs[3]->to_doubles(), call.inputs[4]->to_doubles(),
              call.attributes().boolean("centered"));
        },
    .examples = {example_layer_norm_gradient({4, 7}, 1), example_layer_norm_gradient({2, 3, 33}, 1),
                 example_layer_norm_gradient({5, 3, 4}, 2), example_layer_norm_gradient({4, 7}, 1, false),
                 example_layer_norm_gradient({5, 3, 8}, 2, false)},
});

}  // namespace
}  // namespace tessera::ops
