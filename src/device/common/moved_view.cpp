#include "tessera/device/common/moved_view.h"

#include "tessera/base/shape.h"
#include "tessera/device/common/refusal.h"
#include "tessera/device/common/roles.h"
#include "tessera/graph/operator.h"

namespace tessera::backend {
namespace {

// Axes that lie in memory as one would.
struct Run {
  int64_t extent = 1;
  int64_t stride = 1;  // of its last axis
};

// From the first axis to the last; axes of extent 1 are in none.
std::vector<Run> runs_of(const MovedView& view) {
  std::vector<Run> runs;
  for (size_t axis = 0; axis < view.shape.size(); ++axis) {
    const int64_t extent = view.shape[axis], stride = view.memory.strides[axis];
    if (extent == 1) continue;
    if (!runs.empty() && runs.back().stride == extent * stride) {
      runs.back() = {runs.back().extent * extent, stride};
    } else {
      runs.push_back({extent, stride});
    }
  }
  return runs;
}

// Each new axis has to be in one run.
std::optional<MovedView> reshaped(const MovedView& view, const Shape& shape) {
  std::vector<Run> runs = runs_of(view);
  MovedView result{shape, {view.memory.offset, Shape(shape.size(), 1)}};
  for (size_t axis = shape.size(); axis-- > 0;) {
    while (!runs.empty() && runs.back().extent == 1) runs.pop_back();
    if (runs.empty()) break;  // all axes that are left have extent 1
    Run& run = runs.back();
    result.memory.strides[axis] = run.stride;
    if (run.extent % shape[axis] != 0) return std::nullopt;
    run.extent /= shape[axis];
    run.stride *= shape[axis];
  }
  return result;
}

MovedView transposed(const MovedView& view, const std::vector<int64_t>& permutation) {
  MovedView result{{}, {view.memory.offset, {}}};
  for (const int64_t axis : permutation) {
    result.shape.push_back(view.shape[static_cast<size_t>(axis)]);
    result.memory.strides.push_back(view.memory.strides[static_cast<size_t>(axis)]);
  }
  return result;
}

// What transposed() made `view` of.
MovedView transposed_back(const MovedView& view, const std::vector<int64_t>& permutation) {
  MovedView result = view;
  for (size_t axis = 0; axis < permutation.size(); ++axis) {
    const auto target = static_cast<size_t>(permutation[axis]);
    result.shape[target] = view.shape[axis];
    result.memory.strides[target] = view.memory.strides[axis];
  }
  return result;
}

// One of the parts of a view along an axis, which may count from the end.
template <typename Parts, typename ShapeOf>
MovedView part(const MovedView& view, int64_t axis, const Parts& parts, size_t number, ShapeOf shape_of) {
  const auto place = static_cast<size_t>(axis < 0 ? axis + std::ssize(view.shape) : axis);
  MovedView result = view;
  result.shape = shape_of(parts[number]);
  for (size_t before = 0; before < number; ++before)
    result.memory.offset += shape_of(parts[before])[place] * view.memory.strides[place];
  return result;
}

}  // namespace

MovedView whole_view(const Value& value) {
  const Shape shape = value.type().static_shape();
  return {shape, {0, row_major_strides(shape)}};
}

std::optional<MovedView> view_of_result(const Value& result, const MovedView& operand) {
  const Node& node = *result.producer();
  const std::string& name = node.operator_name();
  if (element_count(operand.shape) == 0) return std::nullopt;
  if (name == "transpose") return transposed(operand, node.attributes().integers("permutation"));
  if (name == "reshape") return reshaped(operand, result.type().static_shape());
  if (name != "split") return std::nullopt;
  return part(operand, node.attributes().integer("axis"), node.outputs(), result.index(),
              [](const auto& output) { return output->type().static_shape(); });
}

std::optional<MovedView> view_of_operand(const Use& use, const MovedView& result) {
  const Node& node = *use.node;
  const std::string& name = node.operator_name();
  if (element_count(result.shape) == 0) return std::nullopt;
  if (name == "transpose") return transposed_back(result, node.attributes().integers("permutation"));
  if (name == "reshape") return reshaped(result, node.input(0)->type().static_shape());
  if (name != "concat") return std::nullopt;
  return part(result, node.attributes().integer("axis"), node.inputs(), use.index,
              [](const Value* input) { return input->type().static_shape(); });
}

std::optional<MovedView> view_of_source(const Value& value, const Value& source) {
  if (&value == &source) return whole_view(source);
  const Node* node = value.producer();
  if (node == nullptr || node->inputs().empty()) return std::nullopt;
  const std::optional<MovedView> operand = view_of_source(*node->input(0), source);
  return operand.has_value() ? view_of_result(value, *operand) : std::nullopt;
}

std::optional<MovedView> view_of_end(const Value& value, const Value& end) {
  if (&value == &end) return whole_view(end);
  if (value.uses().size() != 1 || value.is_output_or_update()) return std::nullopt;
  const Use& use = value.uses().front();
  const std::optional<MovedView> result = view_of_end(*use.node->output(), end);
  return result.has_value() ? view_of_operand(use, *result) : std::nullopt;
}

bool has_aligned_rows(const MovedView& view, DataType type, int64_t bytes) {
  const auto size = static_cast<int64_t>(size_of(type));
  const auto is_aligned = [&](int64_t elements) { return elements * size % bytes == 0; };
  const size_t last = view.shape.size() - 1;
  for (size_t axis = 0; axis < last; ++axis) {
    if (view.shape[axis] > 1 && !is_aligned(view.memory.strides[axis])) return false;
  }
  return is_aligned(view.memory.offset) && (view.shape[last] == 1 || view.memory.strides[last] == 1);
}

PlacedView view_in_input(const Node& node, std::string_view role) {
  const Value& value = in_role(node, role);
  const Value* source = &value;
  if (node.body() != nullptr) {
    while (source->producer() != nullptr && !source->producer()->inputs().empty())
      source = source->producer()->input(0);
  }
  const std::optional<MovedView> view = view_of_source(value, *source);
  refuse_unless(view.has_value(), "the '{}' does not lie in an input", role);
  return {input_index(node, source), *view};
}

PlacedView view_in_output(const Node& node, std::string_view role) {
  const Value& value = in_role(node, role);
  const Value* end = &value;
  while (!output_index(node, end).has_value()) {
    refuse_unless(end->uses().size() == 1, "the '{}' does not lie in an output", role);
    end = end->uses().front().node->output();
  }
  const std::optional<MovedView> view = view_of_end(value, *end);
  refuse_unless(view.has_value(), "the '{}' does not lie in an output", role);
  return {output_index(node, end).value(), *view};
}

}  // namespace tessera::backend
