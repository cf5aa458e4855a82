// Gather, GatherElements, GatherND, ScatterElements, ScatterND, OneHot.
#include <algorithm>

#include "onnx/lowering.h"

namespace tessera::onnx {
namespace {

Value* int64_of(Value* indices) {
  return ops::cast(indices, DataType::int64);
}

// Negative indices count from the end.
Value* from_start(Value* indices, int64_t extent) {
  Value* wide = int64_of(indices);
  Graph& graph = wide->graph();
  Value* zero = number(graph, DataType::int64, 0);
  return ops::select(ops::less(wide, zero),
                     ops::add(wide, number(graph, DataType::int64, static_cast<double>(extent))), wide);
}

void lower_gather(LowerCall& call) {
  Value* x = call.operand(0);
  const int64_t axis = axis_of(call, call.integer("axis", 0), x->type().rank());
  call.result(0, ops::gather(x, from_start(call.operand(1), extent(x, axis)), axis));
}

// Flat positions of elements whose index along one axis is given, and along the others their own.
Value* element_positions(Value* indices, const Shape& shape, int64_t axis) {
  const Shape own = shape_of(indices);
  std::vector<Value*> places;
  for (int64_t i = 0; i < std::ssize(shape); ++i) {
    places.push_back(i == axis ? from_start(indices, shape[static_cast<size_t>(i)])
                               : counted(indices->graph(), own, i));
  }
  return unravel(places, shape);
}

void lower_gather_elements(LowerCall& call) {
  Value* x = call.operand(0);
  const Shape shape = shape_of(x);
  const int64_t axis = axis_of(call, call.integer("axis", 0), std::ssize(shape));
  Value* positions = element_positions(call.operand(1), shape, axis);
  call.result(0, ops::gather(reshape(x, {element_count(shape)}), positions, 0));
}

// The rows that the last axis of the indices names, after so many axes of a batch: flat positions of the
// shape's first axes, with the indices' axes but the last.
Value* row_positions(LowerCall& call, Value* indices, const Shape& shape, size_t batch) {
  const Shape own = shape_of(indices);
  call.require(!own.empty(), "indices are to have an axis");
  const auto depth = static_cast<size_t>(own.back());
  call.require(batch + depth <= shape.size() && batch < own.size() && depth > 0,
               "indices name more axes than there are");
  const Shape places(own.begin(), own.end() - 1);
  std::vector<Value*> parts;
  for (size_t i = 0; i < batch; ++i)
    parts.push_back(counted(indices->graph(), places, static_cast<int64_t>(i)));
  for (size_t i = 0; i < depth; ++i) {
    const int64_t last = std::ssize(own) - 1;
    const auto at = static_cast<int64_t>(i);
    Value* part = squeeze(slice_axis(indices, last, at, at + 1), {last});
    parts.push_back(from_start(part, shape[batch + i]));
  }
  return unravel(parts, Shape(shape.begin(), shape.begin() + static_cast<std::ptrdiff_t>(batch + depth)));
}

// The axes after the first `named` ones as rows.
Shape rows_of(const Shape& shape, size_t named) {
  Shape rows{product(shape, 0, named)};
  rows.insert(rows.end(), shape.begin() + static_cast<std::ptrdiff_t>(named), shape.end());
  return rows;
}

void lower_gather_nd(LowerCall& call) {
  Value* x = call.operand(0);
  Value* indices = call.operand(1);
  const Shape shape = shape_of(x);
  const auto batch = static_cast<size_t>(call.integer("batch_dims", 0));
  Value* positions = row_positions(call, indices, shape, batch);
  const size_t named = batch + static_cast<size_t>(shape_of(indices).back());
  call.result(0, ops::gather(reshape(x, rows_of(shape, named)), positions, 0));
}

// Rows of `table` changed at `positions`. Sums are made as sums, products and extremes on the host.
Value* scatter(LowerCall& call, Value* table, Value* positions, Value* rows, const std::string& reduction) {
  const int64_t count = element_count(shape_of(positions));
  Shape row_shape = shape_of(table);
  row_shape[0] = count;
  Value* flat = reshape(positions, {count});
  Value* updates = reshape(rows, row_shape);
  if (reduction == "none") return ops::set_rows(table, flat, updates);
  const DataType type = table->data_type();
  const DataType computing = computing_type(type);
  if (reduction != "add" || computing == DataType::boolean)
    call.leave_to_host("extremes and products are scattered on the host");
  Value* sums = ops::scatter_add(flat, to_computing(updates), extent(table, 0));
  return from_computing(ops::add(to_computing(table), sums), type);
}

void lower_scatter_elements(LowerCall& call) {
  Value* x = call.operand(0);
  const Shape shape = shape_of(x);
  const int64_t axis = axis_of(call, call.integer("axis", 0), std::ssize(shape));
  Value* positions = element_positions(call.operand(1), shape, axis);
  Value* y = scatter(call, reshape(x, {element_count(shape)}), positions, call.operand(2),
                     call.text("reduction", "none"));
  call.result(0, reshape(y, shape));
}

void lower_scatter_nd(LowerCall& call) {
  Value* x = call.operand(0);
  Value* indices = call.operand(1);
  const Shape shape = shape_of(x);
  Value* positions = row_positions(call, indices, shape, 0);
  const auto named = static_cast<size_t>(shape_of(indices).back());
  Value* y = scatter(call, reshape(x, rows_of(shape, named)), positions, call.operand(2),
                     call.text("reduction", "none"));
  call.result(0, reshape(y, shape));
}

double combined(double a, double b, const std::string& reduction) {
  if (reduction == "mul") return a * b;
  if (reduction == "max") return std::max(a, b);
  if (reduction == "min") return std::min(a, b);
  return a + b;
}

int64_t checked(const HostCall& call, int64_t index, int64_t extent) {
  call.require(index >= -extent && index < extent, fmt::format("index {} of {} rows", index, extent));
  return index < 0 ? index + extent : index;
}

void evaluate_scatter_elements(HostCall& call) {
  Tensor y = call.tensor(0).clone();
  const Tensor indices = call.tensor(1).cast(DataType::int64);
  const Tensor& updates = call.tensor(2);
  const auto axis = static_cast<size_t>(axis_of(call, call.integer("axis", 0), std::ssize(y.shape())));
  const std::vector<int64_t> strides = row_major_strides(y.shape());
  for (int64_t i = 0; i < indices.size(); ++i) {
    int64_t rest = i;
    int64_t place =
        checked(call, indices.data<int64_t>()[static_cast<size_t>(i)], y.shape()[axis]) * strides[axis];
    for (size_t k = indices.shape().size(); k-- > 0;) {
      if (k != axis) place += rest % indices.shape()[k] * strides[k];
      rest /= indices.shape()[k];
    }
    y.set(place, combined(y.at(place), updates.at(i), call.text("reduction", "none")));
  }
  call.result(0, y);
}

void evaluate_scatter_nd(HostCall& call) {
  Tensor y = call.tensor(0).clone();
  const Tensor indices = call.tensor(1).cast(DataType::int64);
  const Tensor& updates = call.tensor(2);
  const auto depth = static_cast<size_t>(indices.shape().back());
  const std::vector<int64_t> strides = row_major_strides(y.shape());
  const int64_t row = product(y.shape(), depth, y.shape().size());
  const int64_t rows = depth == 0 ? 0 : indices.size() / indices.shape().back();
  for (int64_t i = 0; i < rows; ++i) {
    int64_t place = 0;
    for (size_t k = 0; k < depth; ++k)
      place += checked(call, indices.data<int64_t>()[static_cast<size_t>(i) * depth + k], y.shape()[k]) *
               strides[k];
    for (int64_t j = 0; j < row; ++j)
      y.set(place + j, combined(y.at(place + j), updates.at(i * row + j), call.text("reduction", "none")));
  }
  call.result(0, y);
}

void lower_one_hot(LowerCall& call) {
  const int64_t depth = known_integer(call, 1);
  call.require(depth >= 0, "its depth is negative");
  Graph& graph = call.graph();
  Value* indices = from_start(call.operand(0), depth);
  const int64_t rank = indices->type().rank();
  int64_t axis = call.integer("axis", -1);
  if (axis < 0) axis += rank + 1;
  call.require(axis >= 0 && axis <= rank, "its axis is none of the result's");
  Shape shape = shape_of(indices);
  shape.insert(shape.begin() + axis, depth);
  Value* hot = ops::equal(unsqueeze(indices, {axis}), counted(graph, shape, axis));
  Value* values = call.operand(2);
  call.result(0, ops::select(hot, reshape(slice_axis(values, 0, 1, 2), {}),
                             reshape(slice_axis(values, 0, 0, 1), {})));
}

const RuleRegistrations kRegistration{
    {.name = "Gather", .lower = lower_gather},
    {.name = "GatherElements", .lower = lower_gather_elements},
    {.name = "GatherND", .lower = lower_gather_nd},
    {.name = "Scatter", .until = 10, .lower = lower_scatter_elements},
    {.name = "ScatterElements", .lower = lower_scatter_elements, .evaluate = evaluate_scatter_elements},
    {.name = "ScatterND", .lower = lower_scatter_nd, .evaluate = evaluate_scatter_nd},
    {.name = "OneHot", .lower = lower_one_hot},
};

}  // namespace
}  // namespace tessera::onnx
