#include <cmath>
#include <limits>

#include "tessera/base/error.h"

#include "ops/reduction/reduction.h"

namespace tessera::ops {
namespace {

std::vector<TensorType> infer_argmax(const InferenceCall& call) {
  const TensorType& x = call.input(0);
  const int64_t axis = normalized_axis(call.attributes.integer("axis"), x.rank());
  const Dimension& extent = x.shape[static_cast<size_t>(axis)];
  call.require(!extent.is_static() || extent.value() > 0, "there is no largest of no elements");
  return {{DataType::int32, call.attributes.boolean("keep_dimensions") ? kept_shape(x.shape, {axis})
                                                                       : dropped_shape(x.shape, {axis})}};
}

void reference_argmax(const ReferenceCall& call) {
  const Tensor& x = *call.inputs[0];
  Tensor& y = *call.outputs[0];
  const int64_t axis =
      normalized_axis(call.attributes().integer("axis"), static_cast<int64_t>(x.shape().size()));
  const int64_t stride = row_major_strides(x.shape())[static_cast<size_t>(axis)];
  const int64_t extent = x.shape()[static_cast<size_t>(axis)];
  const std::vector<int64_t> places = reduced_places(x.shape(), {axis});
  std::vector<double> best(static_cast<size_t>(y.size()));
  for (size_t i = 0; i < places.size(); ++i) {
    const double element = x.at(static_cast<int64_t>(i));
    const int64_t position = static_cast<int64_t>(i) / stride % extent;
    double& largest = best[static_cast<size_t>(places[i])];
    if (position == 0 || element > largest || (std::isnan(element) && !std::isnan(largest))) {
      largest = element;
      y.set(places[i], static_cast<double>(position));
    }
  }
}

const OperatorRegistration kRegistration({
    .name = "argmax",
    .documentation = "Position (int32) of the largest element along `axis`, the first of equals; a NaN "
                     "counts as larger than every number. The gradient is zero.",
    .operator_class = OperatorClass::reduction,
    .traits = {.low_precision = LowPrecision::follows, .any_axis_order = true},
    .inputs = {{.name = "x", .types = kNumericTypes}},
    .attributes = {{"axis", AttributeKind::integer, -1, "Axis to search; negative from the end."},
                   {"keep_dimensions", AttributeKind::boolean, false, "Keep the axis with extent 1."}},
    .outputs = {"y"},
    .infer = infer_argmax,
    .gradient = [](const GradientCall&) -> std::vector<Value*> { return {nullptr}; },
    .flops = [](const Node& node) { return static_cast<double>(node.input(0)->type().element_count()); },
    .reference = reference_argmax,
    .examples = {{.inputs = {{{5, 7}}}},
                 {.inputs = {{{5, 7, 3}}}, .attributes = {{"axis", 1}, {"keep_dimensions", true}}},
                 {.inputs = {{{4, 33}, -2, 2, DataType::int32}}, .attributes = {{"axis", 0}}},
                 {.inputs = {{{1037}}}}},
});

}  // namespace
}  // namespace tessera::ops
