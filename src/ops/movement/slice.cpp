#include <algorithm>

#include "tessera/base/rounding.h"
#include "tessera/graph/operator.h"
#include "tessera/ops/functions.h"

#include "ops/movement/contiguous.h"
#include "ops/movement/strided.h"

namespace tessera::ops {
namespace {

// Where a slice of one axis begins and how many elements it takes.
struct Range {
  Dimension start;
  Dimension count;
};

Dimension position(int64_t index, const Dimension& extent) {
  return index < 0 ? extent + index : Dimension(index);
}

Range range_of(const Dimension& extent, int64_t start, int64_t limit, int64_t stride) {
  if (extent.is_static()) {
    const int64_t first = std::clamp<int64_t>(position(start, extent).value(), 0, extent.value());
    const int64_t last = std::clamp<int64_t>(position(limit, extent).value(), first, extent.value());
    return {first, quotient_rounded_up(last - first, stride)};
  }
  const Dimension first = position(start, extent);
  const Dimension last = limit == kWholeAxis ? extent : position(limit, extent);
  return {first, (last - first + (stride - 1)).floor_divide(stride)};
}

std::vector<Range> ranges_of(const SymbolicShape& shape, const Attributes& attributes) {
  std::vector<Range> ranges;
  for (size_t axis = 0; axis < shape.size(); ++axis) {
    ranges.push_back(range_of(shape[axis], attributes.integers("starts")[axis],
                              attributes.integers("limits")[axis], attributes.integers("strides")[axis]));
  }
  return ranges;
}

std::vector<TensorType> infer_slice(const InferenceCall& call) {
  const TensorType& x = call.input(0);
  for (const char* name : {"starts", "limits", "strides"}) {
    const size_t given = call.attributes.integers(name).size();
    call.require(given == x.shape.size(), std::string(name) + " must have one number for each axis of " +
                                              to_string(x.shape) + ", got " + std::to_string(given));
  }
  for (size_t axis = 0; axis < x.shape.size(); ++axis) {
    const int64_t start = call.attributes.integers("starts")[axis];
    const int64_t limit = call.attributes.integers("limits")[axis];
    const int64_t stride = call.attributes.integers("strides")[axis];
    call.require(stride > 0 && stride <= kMaximumTensorBytes,
                 "strides must be positive and at most " + std::to_string(kMaximumTensorBytes));
    // A number from the front against one from the end of a symbolic axis: nobody knows which is larger.
    const bool known =
        x.shape[axis].is_static() || limit == kWholeAxis || limit < 0 || (start >= 0 && limit >= start);
    call.require(known, "axis " + std::to_string(axis) + " is symbolic: its limit must be kWholeAxis, " +
                            "count from the end, or follow the start");
  }
  TensorType y{x.data_type, {}};
  for (const Range& range : ranges_of(x.shape, call.attributes)) y.shape.push_back(range.count);
  return {y};
}

void reference_slice(const ReferenceCall& call) {
  const Tensor& input = *call.inputs[0];
  const std::vector<Range> ranges = ranges_of(to_symbolic(input.shape()), call.attributes());
  StridedView from{0, row_major_strides(input.shape())};
  for (size_t axis = 0; axis < ranges.size(); ++axis) {
    from.offset += ranges[axis].start.value() * from.strides[axis];
    from.strides[axis] *=
        std::min(call.attributes().integers("strides")[axis],
                 std::max<int64_t>(input.shape()[axis], 1));  // any further one ends the axis
  }
  const Shape& shape = call.outputs[0]->shape();
  copy_elements(input, from, *call.outputs[0], {0, row_major_strides(shape)}, shape);
}

// A stride matters only between two elements.
std::vector<int64_t> result_offsets(const Node& node) {
  const TensorType& x = node.input(0)->type();
  std::vector<int64_t> starts;
  Shape counts;
  for (const Range& range : ranges_of(x.shape, node.attributes())) {
    const int64_t stride = node.attributes().integers("strides")[starts.size()];
    if (stride != 1 && range.count.value() > 1) return {};
    starts.push_back(range.start.value());
    counts.push_back(range.count.value());
  }
  const auto offset = contiguous_part(x.data_type, x.static_shape(), starts, counts);
  return offset.has_value() ? std::vector<int64_t>{*offset} : std::vector<int64_t>{};
}

// Zeros around and between the elements of the gradient.
std::vector<Value*> gradient_slice(const GradientCall& call) {
  const SymbolicShape& shape = call.input(0)->shape();
  std::vector<int64_t> low;
  std::vector<int64_t> high;
  std::vector<int64_t> interior;
  for (const Range& range : ranges_of(shape, call.node.attributes())) {
    const size_t axis = low.size();
    const int64_t stride = call.node.attributes().integers("strides")[axis];
    const bool empty = range.count == Dimension(0);
    const Dimension covered = empty ? Dimension(0) : (range.count - 1) * stride + 1;
    low.push_back(range.start.value());
    high.push_back((shape[axis] - range.start - covered).value());
    interior.push_back(stride - 1);
  }
  return {pad(call.gradient(), low, high, 0, interior)};
}

using Integers = std::initializer_list<int64_t>;

OperatorExample example_slice(Shape shape, Integers starts, Integers limits, Integers strides,
                              DataType type = DataType::fp32) {
  return {.inputs = {{std::move(shape), -2, 2, type}},
          .attributes = {{"starts", starts}, {"limits", limits}, {"strides", strides}}};
}

AttributeSpecification list(const std::string& name, const std::string& documentation) {
  return {.name = name, .kind = AttributeKind::integers, .default_value = {}, .documentation = documentation};
}

OperatorSchema schema_slice() {
  OperatorSchema schema;
  schema.name = "slice";
  schema.documentation =
      "Along each axis the elements start, start + stride, ... below limit. Negative starts and limits count "
      "from the end; a limit beyond the extent means the extent, and 9223372036854775807 (kWholeAxis) the "
      "whole of a symbolic axis.";
  schema.operator_class = OperatorClass::movement;
  schema.traits = {.any_axis_order = true};
  schema.inputs = {{.name = "x", .types = kAnyTypes}};
  schema.attributes = {list("starts", "the first index of each axis"),
                       list("limits", "one past the last index of each axis"),
                       list("strides", "the step of each axis, positive")};
  schema.outputs = {"y"};
  schema.infer = infer_slice;
  schema.gradient = gradient_slice;
  schema.reference = reference_slice;
  schema.result_offsets = result_offsets;
  schema.examples = {example_slice({5, 7}, {1, 2}, {4, 7}, {1, 1}),
                     example_slice({5, 7}, {0, 1}, {kWholeAxis, 100}, {2, 3}),
                     example_slice({2, 9, 3}, {0, -4, 0}, {2, -1, 2}, {1, 1, 1}),
                     example_slice({8}, {1}, {8}, {3}),
                     example_slice({4, 3}, {2, 0}, {2, 3}, {2, 1}),
                     example_slice({}, {}, {}, {}),
                     example_slice({9}, {2}, {8}, {2}, DataType::int64)};
  return schema;
}

const OperatorRegistration kRegistration{schema_slice()};

}  // namespace
}  // namespace tessera::ops
