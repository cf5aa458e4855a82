#include "ops/normalization/normalization.h"

namespace tessera::ops {
namespace {

std::vector<TensorType> infer_batch_norm_training(const InferenceCall& call) {
  const TensorType& x = call.input(0);
  call.require(x.rank() >= 2, "x must be [N, ..., C]");
  const SymbolicShape channels{x.shape.back()};
  check_scale(call, x, call.input(1), channels, "one number per channel");
  call.require(call.input(2).shape == channels, "bias must be as scale");
  const TensorType statistics{statistics_type(x.data_type), channels};
  return {x, statistics, statistics};
}

std::vector<Value*> gradient_batch_norm_training(const GradientCall& call) {
  Value* x = call.input(0);
  // Running statistics send nothing back; a loss that reads the batch's mean or variance does.
  Value* rest = through_statistics(x, {call.output(1), call.gradient(1), call.gradient(2)},
                                   {x->shape().begin(), x->shape().end() - 1});
  if (call.gradient() == nullptr) return {rest, nullptr, nullptr};
  const NormGradients gradients = batch_norm_gradient(call.gradient(), x, call.input(1), call.output(1),
                                                      call.output(2), call.node.attributes().real("epsilon"));
  return {sum_of(gradients.x, rest), gradients.scale, gradients.bias};
}

OperatorExample example_batch_norm_training(Shape x, double epsilon = 1e-5) {
  const int64_t channels = x.back();
  return {.inputs = {{std::move(x), -2, 3}, {{channels}, 0.5, 2}, {{channels}}},
          .attributes = {{"epsilon", epsilon}}};
}

const OperatorRegistration kRegistration({
    .name = "batch_norm_training",
    .documentation = "y = (x - mean) / sqrt(variance + epsilon) * scale + bias with the mean and the biased "
                     "variance of the batch, over all axes but the last (channels); these two are results "
                     "as well (Ioffe and Szegedy 2015, arXiv:1502.03167). x: [N, ..., C], all else [C]; "
                     "beside a 16-bit x these stay fp32.",
    .operator_class = OperatorClass::normalization,
    .traits = {.low_precision = LowPrecision::follows},
    .inputs = {{.name = "x"},
               {.name = "scale", .types = kStatisticsTypes, .type_variable = "S"},
               {.name = "bias", .types = kStatisticsTypes, .type_variable = "S"}},
    .attributes = {epsilon_attribute()},
    .outputs = {"y", "mean", "variance"},
    .infer = infer_batch_norm_training,
    .gradient = gradient_batch_norm_training,
    .flops =
        [](const Node& node) { return 7.0 * static_cast<double>(node.input(0)->type().element_count()); },
    .reference =
        [](const ReferenceCall& call) {
          run_normalization(call, batch_norm_groups(call.inputs[0]->shape()), {.inverse_deviation = false});
        },
    .examples = {example_batch_norm_training({4, 3, 5, 7}), example_batch_norm_training({13, 5}, 1e-3),
                 example_batch_norm_training({3, 11, 2}), example_batch_norm_training({2, 2, 3, 2, 33})},
});

}  // namespace
}  // namespace tessera::ops
