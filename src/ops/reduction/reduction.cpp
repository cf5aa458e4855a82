#include "ops/reduction/reduction.h"

#include <algorithm>

#include "tessera/base/error.h"

namespace tessera::ops {
namespace {

std::vector<int64_t> axes_of(const Node& node) {
  return normalized_axes(node.attributes().integers("axes"), node.input(0)->type().rank());
}

std::vector<TensorType> infer_reduction(const InferenceCall& call) {
  const TensorType& x = call.input(0);
  const std::vector<int64_t> axes = normalized_axes(call.attributes.integers("axes"), x.rank());
  return {{x.data_type, call.attributes.boolean("keep_dimensions") ? kept_shape(x.shape, axes)
                                                                   : dropped_shape(x.shape, axes)}};
}

void run_reduction(const ReferenceCall& call, const Reduction& description) {
  const Tensor& x = *call.inputs[0];
  Tensor& y = *call.outputs[0];
  const std::vector<int64_t> places = reduced_places(x.shape(), axes_of(call.node));
  std::vector<double> sums(static_cast<size_t>(y.size()), description.start);
  for (size_t i = 0; i < places.size(); ++i) {
    double& sum = sums[static_cast<size_t>(places[i])];
    sum = description.combine(sum, x.at(static_cast<int64_t>(i)));
  }
  const int64_t count = sums.empty() ? 0 : x.size() / y.size();
  for (size_t i = 0; i < sums.size(); ++i) {
    y.set(static_cast<int64_t>(i), description.finish ? description.finish(sums[i], count) : sums[i]);
  }
}

}  // namespace

std::vector<int64_t> normalized_axes(const std::vector<int64_t>& axes, int64_t rank) {
  std::vector<int64_t> result;
  if (axes.empty()) {
    for (int64_t axis = 0; axis < rank; ++axis) result.push_back(axis);
    return result;
  }
  for (int64_t axis : axes) result.push_back(normalized_axis(axis, rank));
  std::sort(result.begin(), result.end());
  require(std::adjacent_find(result.begin(), result.end()) == result.end(), ErrorCode::invalid_graph,
          "axes [{}] name an axis twice", fmt::join(axes, ", "));
  return result;
}

SymbolicShape kept_shape(const SymbolicShape& shape, const std::vector<int64_t>& axes) {
  SymbolicShape result = shape;
  for (int64_t axis : axes) result[static_cast<size_t>(axis)] = 1;
  return result;
}

SymbolicShape dropped_shape(const SymbolicShape& shape, const std::vector<int64_t>& axes) {
  SymbolicShape result;
  for (size_t axis = 0; axis < shape.size(); ++axis) {
    if (!std::binary_search(axes.begin(), axes.end(), static_cast<int64_t>(axis)))
      result.push_back(shape[axis]);
  }
  return result;
}

Value* axes_element_count(Value* x, const std::vector<int64_t>& axes, DataType type) {
  SymbolicShape shape;
  for (int64_t axis : axes) shape.push_back(x->shape()[static_cast<size_t>(axis)]);
  return count_elements(x->graph(), std::move(shape), type);
}

std::vector<int64_t> reduced_places(const Shape& shape, const std::vector<int64_t>& axes) {
  std::vector<int64_t> strides(shape.size(), 0);  // of the result; 0 along reduced axes
  int64_t stride = 1;
  for (size_t axis = shape.size(); axis-- > 0;) {
    if (std::binary_search(axes.begin(), axes.end(), static_cast<int64_t>(axis))) continue;
    strides[axis] = stride;
    stride *= shape[axis];
  }
  std::vector<int64_t> places(static_cast<size_t>(element_count(shape)));
  for (size_t i = 0; i < places.size(); ++i) {
    auto rest = static_cast<int64_t>(i);
    for (size_t axis = shape.size(); axis-- > 0;) {
      places[i] += rest % shape[axis] * strides[axis];
      rest /= shape[axis];
    }
  }
  return places;
}

OperatorSchema reduction(Reduction description) {
  OperatorSchema schema;
  schema.name = description.name;
  schema.documentation = description.documentation;
  schema.operator_class = OperatorClass::reduction;
  schema.traits = {.any_axis_order = true, .reduction = description.kind};
  schema.inputs = {{.name = "x", .types = description.types}};
  schema.attributes = {
      {"axes", AttributeKind::integers, std::vector<int64_t>{}, "Axes to reduce; empty for all."},
      {"keep_dimensions", AttributeKind::boolean, false, "Keep the reduced axes with extent 1."}};
  schema.outputs = {"y"};
  schema.infer = infer_reduction;
  schema.gradient = [gradient = description.gradient](const GradientCall& call) -> std::vector<Value*> {
    const std::vector<int64_t> axes = axes_of(call.node);
    const SymbolicShape kept = kept_shape(call.input(0)->shape(), axes);
    return {gradient(call.input(0), call.output(), reshape(call.gradient(), kept), axes)};
  };
  schema.flops = [](const Node& node) { return static_cast<double>(node.input(0)->type().element_count()); };
  const auto example = [](Shape shape, std::vector<int64_t> axes, bool keep = false) {
    return OperatorExample{.inputs = {{std::move(shape), -2, 2}},
                           .attributes = {{"axes", std::move(axes)}, {"keep_dimensions", keep}}};
  };
  schema.examples = {example({3, 5, 7}, {1}),
                     example({3, 5, 7}, {0, -1}, true),
                     example({2, 3, 5, 2}, {1, 2}),
                     example({13}, {}),
                     example({}, {}),
                     example({3, 1, 4}, {-2}),
                     example({1031, 2}, {0}, false),
                     example({2, 129}, {-1}, true)};
  if (description.types.contains(DataType::int32)) {
    schema.examples.push_back({.inputs = {{{4, 6}, -3, 3, DataType::int32}}, .attributes = {{"axes", {1}}}});
  }
  schema.reference = [description = std::move(description)](const ReferenceCall& call) {
    run_reduction(call, description);
  };
  return schema;
}

}  // namespace tessera::ops
