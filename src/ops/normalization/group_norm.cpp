#include "ops/normalization/group_norm_shapes.h"

namespace tessera::ops {
namespace {

std::vector<TensorType> infer_group_norm(const InferenceCall& call) {
  const TensorType& x = call.input(0);
  const TensorType statistics = group_norm_statistics(call, x);
  check_scale(call, x, call.input(1), {x.shape.back()}, "one number per channel");
  call.require(call.input(2).shape == call.input(1).shape, "bias must be as scale");
  return {x, statistics, statistics};
}

// What flows back through the statistics, seen as [N, ..., groups, channels of a group].
Value* through_group_statistics(const GradientCall& call, int64_t groups) {
  if (call.gradient(1) == nullptr && call.gradient(2) == nullptr) return nullptr;
  Value* x = call.input(0);
  const Dimension channels = *x->shape().back().divide_exactly(groups);
  SymbolicShape split = x->shape();
  split.back() = groups;
  split.push_back(channels);
  SymbolicShape elements(split.begin() + 1, split.end() - 2);
  elements.push_back(channels);
  const auto kept = [&](Value* value) {
    if (value == nullptr) return value;
    SymbolicShape shape(split.size(), 1);
    shape.front() = split.front();
    shape[shape.size() - 2] = groups;
    return reshape(value, std::move(shape));
  };
  Value* result = through_statistics(reshape(x, split),
                                     {kept(call.output(1)), kept(call.gradient(1)),
                                      kept(variance_gradient(call.output(2), call.gradient(2)))},
                                     elements);
  return reshape(result, x->shape());
}

std::vector<Value*> gradient_group_norm(const GradientCall& call) {
  const int64_t groups = call.node.attributes().integer("groups");
  Value* rest = through_group_statistics(call, groups);
  if (call.gradient() == nullptr) return {rest, nullptr, nullptr};
  const NormGradients gradients = group_norm_gradient(call.gradient(), call.input(0), call.input(1),
                                                      call.output(1), call.output(2), groups);
  return {sum_of(gradients.x, rest), gradients.scale, gradients.bias};
}

OperatorExample example_group_norm(Shape x, int64_t groups) {
  const int64_t channels = x.back();
  return {.inputs = {{std::move(x), -2, 3}, {{channels}, 0.5, 2}, {{channels}}},
          .attributes = {{"groups", groups}}};
}

const OperatorRegistration kRegistration({
    .name = "group_norm",
    .documentation = "y = (x - mean) * inverse_deviation * scale + bias, with the mean and 1 / sqrt(biased "
                     "variance + epsilon) of each image and each of `groups` groups of channels, which are "
                     "results as well (Wu and He 2018, arXiv:1803.08494). With as many groups as channels "
                     "it is instance normalization. x: [N, ..., C], scale and bias: [C], statistics: [N, "
                     "groups]. Beside a 16-bit x all else stays fp32.",
    .operator_class = OperatorClass::normalization,
    .traits = {.low_precision = LowPrecision::follows},
    .inputs = {{.name = "x"},
               {.name = "scale", .types = kStatisticsTypes, .type_variable = "S"},
               {.name = "bias", .types = kStatisticsTypes, .type_variable = "S"}},
    .attributes = {group_norm_groups_attribute(), epsilon_attribute()},
    .outputs = {"y", "mean", "inverse_deviation"},
    .infer = infer_group_norm,
    .gradient = gradient_group_norm,
    .flops =
        [](const Node& node) { return 7.0 * static_cast<double>(node.input(0)->type().element_count()); },
    .reference =
        [](const ReferenceCall& call) {
          run_normalization(
              call, group_norm_groups(call.inputs[0]->shape(), call.attributes().integer("groups")), {});
        },
    .examples = {example_group_norm({2, 3, 5, 6}, 3), example_group_norm({2, 5, 4}, 4),
                 example_group_norm({3, 8}, 2), example_group_norm({1, 2, 3, 3, 4}, 1)},
});

}  // namespace
}  // namespace tessera::ops
