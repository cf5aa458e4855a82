// What softmax and its logarithm share: all but one expression.
#pragma once

#include <cmath>
#include <functional>
#include <limits>
#include <string>
#include <vector>

#include "tessera/graph/operator.h"
#include "tessera/ops/functions.h"

#include "ops/reduction/reduction.h"

namespace tessera::ops {

struct SoftmaxVariant {
  std::string name;
  std::string documentation;
  // Of x less the largest of its row, and the row's sum of such exponentials: the largest may be so large
  // that the sum's logarithm is lost beside it.
  std::function<double(double x, double sum)> element;
  std::function<std::vector<Value*>(const GradientCall&)> gradient;
};

inline void run_softmax(const ReferenceCall& call, const SoftmaxVariant& variant) {
  const std::vector<double> x = call.inputs[0]->to_doubles();
  const Shape& shape = call.inputs[0]->shape();
  const int64_t axis = normalized_axis(call.attributes().integer("axis"), static_cast<int64_t>(shape.size()));
  const std::vector<int64_t> rows = reduced_places(shape, {axis});
  const size_t count = x.size() / static_cast<size_t>(std::max<int64_t>(shape[static_cast<size_t>(axis)], 1));
  std::vector<double> largest(count, -std::numeric_limits<double>::infinity());
  std::vector<double> sums(count, 0);
  for (size_t i = 0; i < x.size(); ++i) {
    double& best = largest[static_cast<size_t>(rows[i])];
    best = std::max(best, x[i]);
  }
  for (size_t i = 0; i < x.size(); ++i) {
    const auto row = static_cast<size_t>(rows[i]);
    sums[row] += std::exp(x[i] - largest[row]);
  }
  for (size_t i = 0; i < x.size(); ++i) {
    const auto row = static_cast<size_t>(rows[i]);
    call.outputs[0]->set(static_cast<int64_t>(i), variant.element(x[i] - largest[row], sums[row]));
  }
}

inline OperatorSchema softmax_schema(SoftmaxVariant variant) {
  OperatorSchema schema;
  schema.name = variant.name;
  schema.documentation = variant.documentation;
  schema.operator_class = OperatorClass::normalization;
  schema.traits = {.any_axis_order = true};
  schema.inputs = {{.name = "x"}};
  schema.attributes = {{"axis", AttributeKind::integer, -1,
                        "Axis along which the exponentials are summed; negative from the end."}};
  schema.outputs = {"y"};
  schema.infer = [](const InferenceCall& call) -> std::vector<TensorType> {
    normalized_axis(call.attributes.integer("axis"), call.input(0).rank());
    return {call.input(0)};
  };
  schema.gradient = variant.gradient;
  schema.flops = [](const Node& node) {
    return 4.0 * static_cast<double>(node.input(0)->type().element_count());
  };
  const auto example = [](Shape shape, int64_t axis, double bound) {
    return OperatorExample{.inputs = {{std::move(shape), -bound, bound}}, .attributes = {{"axis", axis}}};
  };
  schema.examples = {example({5, 7}, -1, 3), example({3, 4, 5}, 1, 3), example({37}, 0, 8),
                     example({2, 1031}, -1, 3), example({3, 1}, -1, 3)};
  schema.reference = [variant = std::move(variant)](const ReferenceCall& call) {
    run_softmax(call, variant);
  };
  return schema;
}

}  // namespace tessera::ops
