// Slice, Pad, CenterCropPad, Trilu, ReverseSequence.
#include <algorithm>
#include <numeric>

#include "onnx/lowering.h"

namespace tessera::onnx {
namespace {

// Elements of one axis at these places.
Value* take(Value* x, int64_t axis, const std::vector<int64_t>& places) {
  return ops::gather(x, integers(x->graph(), places), axis);
}

Value* slice_with_step(Value* x, int64_t axis, int64_t start, int64_t end, int64_t step) {
  const int64_t size = extent(x, axis);
  const auto place = [&](int64_t at, int64_t low, int64_t high) {
    return std::clamp<int64_t>(at < 0 ? at + size : at, low, high);
  };
  if (step > 0) {
    start = place(start, 0, size);
    end = std::max(start, place(end, 0, size));
    std::vector<int64_t> starts(static_cast<size_t>(x->type().rank()), 0);
    std::vector<int64_t> limits(starts.size(), ops::kWholeAxis);  // whatever the other extents are
    std::vector<int64_t> strides(starts.size(), 1);
    starts[static_cast<size_t>(axis)] = start;
    limits[static_cast<size_t>(axis)] = end;
    strides[static_cast<size_t>(axis)] = std::min(step, std::max<int64_t>(size, 1));
    return start == 0 && end == size && step == 1 ? x : ops::slice(x, starts, limits, strides);
  }
  // An end below all elements is written as one far below.
  start = place(start, -1, size - 1);
  end = end < -size ? -1 : place(end, -1, size - 1);
  std::vector<int64_t> places;
  step = std::max(step, -size - 1);
  for (int64_t at = start; at > end; at += step) places.push_back(at);
  return take(x, axis, places);
}

void lower_slice(LowerCall& call) {
  const bool has_operands = call.version() >= 10;
  const auto given = [&](size_t operand, const char* name) {
    if (!has_operands) return call.integers(name);
    return call.has(operand) ? call.known_integers(operand) : std::vector<int64_t>{};
  };
  const std::vector<int64_t> starts = given(1, "starts");
  const std::vector<int64_t> ends = given(2, "ends");
  std::vector<int64_t> axes = given(3, "axes");
  std::vector<int64_t> steps = has_operands ? given(4, "") : std::vector<int64_t>{};
  if (axes.empty()) {
    axes.resize(starts.size());
    std::iota(axes.begin(), axes.end(), 0);
  }
  if (steps.empty()) steps.assign(starts.size(), 1);
  call.require(ends.size() == starts.size() && axes.size() == starts.size() && steps.size() == starts.size(),
               "starts, ends, axes and steps are not as many");
  Value* x = call.operand(0);
  for (size_t i = 0; i < axes.size(); ++i) {
    call.require(steps[i] != 0, "a step is 0");
    x = slice_with_step(x, axis_of(call, axes[i], x->type().rank()), starts[i], ends[i], steps[i]);
  }
  call.result(0, x);
}

// Where the element at `i`, from -low to beyond the axis, comes from.
int64_t source_place(int64_t i, int64_t size, const std::string& mode) {
  if (mode == "edge") return std::clamp<int64_t>(i, 0, size - 1);
  if (mode == "wrap") return ((i % size) + size) % size;
  if (size == 1) return 0;
  const int64_t period = 2 * (size - 1);  // reflect: the edge stands once
  const int64_t at = ((i % period) + period) % period;
  return at < size ? at : period - at;
}

Value* pad_by_places(Value* x, int64_t axis, int64_t low, int64_t high, const std::string& mode) {
  std::vector<int64_t> places;
  const int64_t size = extent(x, axis);
  for (int64_t i = -low; i < size + high; ++i) places.push_back(source_place(i, size, mode));
  return take(x, axis, places);
}

Value* pad_with_value(Value* x, std::vector<int64_t> low, std::vector<int64_t> high, double value) {
  for (size_t axis = 0; axis < low.size(); ++axis) {
    const int64_t size = extent(x, static_cast<int64_t>(axis));
    x = slice_axis(x, static_cast<int64_t>(axis), std::max<int64_t>(0, -low[axis]),
                   size - std::max<int64_t>(0, -high[axis]));
    low[axis] = std::max<int64_t>(0, low[axis]);
    high[axis] = std::max<int64_t>(0, high[axis]);
  }
  return ops::pad(x, low, high, value);
}

void lower_pad(LowerCall& call) {
  const bool has_operands = call.version() >= 11;
  Value* x = call.operand(0);
  const auto rank = x->type().rank();
  const std::vector<int64_t> pads = has_operands ? call.known_integers(1) : call.integers("pads");
  std::vector<int64_t> axes(static_cast<size_t>(rank));
  std::iota(axes.begin(), axes.end(), 0);
  if (call.has(3)) {
    axes = call.known_integers(3);
    for (int64_t& axis : axes) axis = axis_of(call, axis, rank);
  }
  call.require(pads.size() == 2 * axes.size(), "there are to be two pads for each axis");
  const std::string mode = call.text("mode", "constant");
  std::vector<int64_t> low(static_cast<size_t>(rank), 0);
  std::vector<int64_t> high(static_cast<size_t>(rank), 0);
  for (size_t i = 0; i < axes.size(); ++i) {
    const auto axis = static_cast<size_t>(axes[i]);
    low[axis] = pads[i];
    high[axis] = pads[i + axes.size()];
    call.require(extent(x, axes[i]) + low[axis] + high[axis] >= 0, "more is cut off than there is");
  }
  if (mode == "constant") {
    const double value = has_operands ? (call.has(2) ? known_number(call, 2) : 0) : call.real("value", 0);
    return call.result(0, pad_with_value(x, low, high, value));
  }
  for (int64_t axis = 0; axis < rank; ++axis) {
    const auto at = static_cast<size_t>(axis);
    if (low[at] == 0 && high[at] == 0) continue;
    call.require(extent(x, axis) > 0, "an empty axis has nothing to repeat");
    x = pad_by_places(x, axis, low[at], high[at], mode);
  }
  call.result(0, x);
}

void lower_center_crop_pad(LowerCall& call) {
  Value* x = call.operand(0);
  const std::vector<int64_t> wanted = call.known_integers(1);
  const int64_t rank = x->type().rank();
  std::vector<int64_t> axes = call.integers("axes");
  if (axes.empty()) {
    axes.resize(static_cast<size_t>(rank));
    std::iota(axes.begin(), axes.end(), 0);
  }
  call.require(axes.size() == wanted.size(), "there is to be an extent for each axis");
  std::vector<int64_t> low(static_cast<size_t>(rank), 0);
  std::vector<int64_t> high = low;
  for (size_t i = 0; i < axes.size(); ++i) {
    const int64_t axis = axis_of(call, axes[i], rank);
    const int64_t size = extent(x, axis);
    const int64_t more = wanted[i] - size;
    const auto at = static_cast<size_t>(axis);
    low[at] = more >= 0 ? more / 2 : -((size - wanted[i]) / 2);
    high[at] = more - low[at];
  }
  call.result(0, pad_with_value(x, low, high, 0));
}

void lower_trilu(LowerCall& call) {
  Value* x = call.operand(0);
  const Shape shape = shape_of(x);
  call.require(shape.size() >= 2, "its operand is to have two axes at least");
  Graph& graph = call.graph();
  const Shape matrix{shape[shape.size() - 2], shape[shape.size() - 1]};
  Value* shift = call.has(1) ? reshape(call.operand(1), {}) : number(graph, DataType::int64, 0);
  Value* diagonal = ops::add(counted(graph, matrix, 0), shift);
  Value* column = counted(graph, matrix, 1);
  Value* keeps = call.integer("upper", 1) != 0 ? ops::greater_equal(column, diagonal)
                                               : ops::less_equal(column, diagonal);
  call.result(0, ops::select(keeps, x, number(graph, x->data_type(), 0)));
}

// The first elements of each row of a batch in reverse.
void lower_reverse_sequence(LowerCall& call) {
  Value* x = call.operand(0);
  const int64_t time = call.integer("time_axis", 0);
  const int64_t batch = call.integer("batch_axis", 1);
  call.require(((time == 0 && batch == 1) || (time == 1 && batch == 0)) && x->type().rank() > 1,
               "its axes are the first two");
  Graph& graph = call.graph();
  const Shape shape = shape_of(x);
  const Shape places{shape[0], shape[1]};
  Value* at = counted(graph, places, time);
  Value* length = unsqueeze(call.operand(1), {time});
  Value* mirrored = ops::subtract(ops::subtract(length, number(graph, DataType::int64, 1)), at);
  Value* source = ops::select(ops::less(at, length), mirrored, at);
  Value* row = counted(graph, places, batch);
  Shape rows = shape;
  rows.erase(rows.begin());
  rows[0] = shape[0] * shape[1];
  Value* flat = time == 0 ? unravel({source, row}, places) : unravel({row, source}, places);
  call.result(0, ops::gather(reshape(x, rows), flat, 0));
}

const RuleRegistrations kRegistration{
    {.name = "Slice", .lower = lower_slice},
    {.name = "Pad", .lower = lower_pad},
    {.name = "CenterCropPad", .lower = lower_center_crop_pad},
    {.name = "Trilu", .lower = lower_trilu},
    {.name = "ReverseSequence", .lower = lower_reverse_sequence},
};

}  // namespace
}  // namespace tessera::onnx
