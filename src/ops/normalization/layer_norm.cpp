#include <array>

#include "ops/normalization/layer_norm_shapes.h"

namespace tessera::ops {
namespace {

std::vector<TensorType> infer_layer_norm(const InferenceCall& call) {
  const TensorType& x = call.input(0);
  const TensorType statistics = layer_norm_statistics(call, x);
  check_scale(call, x, call.input(1), layer_norm_row(call, x), "one number per element of a row");
  const TensorType* bias = call.operand(2);
  call.require(bias == nullptr || *bias == call.input(1), "bias must be as scale");
  return {x, statistics, statistics};
}

std::vector<Value*> gradient_layer_norm(const GradientCall& call) {
  Value* x = call.input(0);
  const Attributes& attributes = call.node.attributes();
  const int64_t axes = attributes.integer("axes");
  // Statistics with the normalized axes as ones.
  const auto kept = [&](Value* value) {
    if (value == nullptr) return value;
    SymbolicShape shape = value->shape();
    shape.resize(shape.size() + static_cast<size_t>(axes), 1);
    return reshape(value, std::move(shape));
  };
  // A mean that is 0 passes nothing on.
  Value* mean_gradient = attributes.boolean("centered") ? call.gradient(1) : nullptr;
  Value* rest = through_statistics(
      x,
      {kept(call.output(1)), kept(mean_gradient), kept(variance_gradient(call.output(2), call.gradient(2)))},
      {x->shape().end() - axes, x->shape().end()});
  if (call.gradient() == nullptr) return call.of_inputs(std::array<Value*, 3>{rest, nullptr, nullptr});
  const NormGradients gradients = layer_norm_gradient(call.gradient(), x, call.input(1), call.output(1),
                                                      call.output(2), axes, attributes.boolean("centered"));
  return call.of_inputs(std::array{sum_of(gradients.x, rest), gradients.scale, gradients.bias});
}

OperatorExample example_layer_norm(Shape x, int64_t axes) {
  Shape row(x.end() - axes, x.end());
  return {.inputs = {{std::move(x), -2, 3}, {row, 0.5, 2}, {row}}, .attributes = {{"axes", axes}}};
}

// Without a bias.
OperatorExample example_rms_norm(Shape x, int64_t axes) {
  OperatorExample example = example_layer_norm(std::move(x), axes);
  example.inputs.pop_back();
  example.attributes.set("centered", false);
  return example;
}

const OperatorRegistration kRegistration({
    .name = "layer_norm",
    .documentation =
        "y = (x - mean) * inverse_deviation * scale + bias, with the mean and 1 / sqrt(biased "
        "variance + epsilon) over the last `axes` axes, which are results as well; scale and "
        "bias have the shape of these axes (Ba et al. 2016, arXiv:1607.06450). Not centered: x / "
        "sqrt(mean of x^2 + epsilon) * scale, of which that root's inverse is the second "
        "statistic (Zhang and Sennrich 2019, arXiv:1910.07467). Beside a 16-bit x all else stays "
        "fp32.",
    .operator_class = OperatorClass::normalization,
    .traits = {.low_precision = LowPrecision::follows},
    .inputs = {{.name = "x"},
               {.name = "scale", .types = kStatisticsTypes, .type_variable = "S"},
               {.name = "bias", .types = kStatisticsTypes, .type_variable = "S", .optional = true}},
    .attributes = {layer_norm_axes(), epsilon_attribute(), layer_norm_centered()},
    .outputs = {"y", "mean", "inverse_deviation"},
    .infer = infer_layer_norm,
    .gradient = gradient_layer_norm,
    .flops =
        [](const Node& node) { return 7.0 * static_cast<double>(node.input(0)->type().element_count()); },
    .reference =
        [](const ReferenceCall& call) {
          run_normalization(call,
                            layer_norm_groups(call.inputs[0]->shape(), call.attributes().integer("axes")),
                            {.inverse_deviation = true, .centered = call.attributes().boolean("centered")});
        },
    .examples = {example_layer_norm({4, 7}, 1), example_layer_norm({2, 3, 33}, 1),
                 example_layer_norm({5, 3, 4}, 2), example_layer_norm({6}, 1), example_rms_norm({4, 7}, 1),
                 example_rms_norm({5, 3, 8}, 2)},
});

}  // namespace
}  // namespace tessera::ops
