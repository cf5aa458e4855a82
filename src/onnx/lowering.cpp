#include "onnx/lowering.h"

#include <algorithm>
#include <numeric>

namespace tessera::onnx {

int64_t axis_of(const program::Call& call, int64_t axis, int64_t rank) {
  call.require(axis >= -rank && axis < rank, fmt::format("axis {} of {} axes", axis, rank));
  return axis < 0 ? axis + rank : axis;
}

std::vector<int64_t> axes_of(const program::Call& call, const std::vector<int64_t>& axes, int64_t rank) {
  std::vector<int64_t> result;
  for (const int64_t axis : axes) result.push_back(axis_of(call, axis, rank));
  std::sort(result.begin(), result.end());
  call.require(std::adjacent_find(result.begin(), result.end()) == result.end(), "an axis is given twice");
  return result;
}

namespace {

Tensor one_number(const program::Call& call, const Tensor& tensor, size_t operand) {
  call.require(tensor.size() == 1, fmt::format("operand {} is to hold one number", operand));
  return tensor;
}

}  // namespace

int64_t known_integer(LowerCall& call, size_t operand) {
  return one_number(call, call.known(operand), operand).cast(DataType::int64).data<int64_t>()[0];
}

double known_number(LowerCall& call, size_t operand) {
  return one_number(call, call.known(operand), operand).at(0);
}

int64_t integer_in(const HostCall& call, size_t operand) {
  return one_number(call, call.tensor(operand), operand).cast(DataType::int64).data<int64_t>()[0];
}

double number_in(const HostCall& call, size_t operand) {
  return one_number(call, call.tensor(operand), operand).at(0);
}

Value* second_operand(LowerCall& call) {
  Value* b = call.operand(1);
  if (call.version() >= 7 || call.integer("broadcast", 0) == 0 || !call.has_argument("axis")) return b;
  const int64_t rank = call.type(0).rank();
  const int64_t after = rank - axis_of(call, call.integer("axis"), rank) - b->type().rank();
  call.require(after >= 0, "its second operand has more axes than the first one from its axis on");
  Shape shape = shape_of(b);
  shape.insert(shape.end(), static_cast<size_t>(after), 1);
  return reshape(b, shape);
}

Shape shape_of(const Value* value) {
  return value->type().static_shape();
}

int64_t extent(const Value* value, int64_t axis) {
  require(axis >= 0 && axis < value->type().rank(), ErrorCode::invalid_graph, "{} has no axis {}",
          to_string(value->type()), axis);
  return value->shape()[static_cast<size_t>(axis)].value();
}

int64_t product(const Shape& shape, size_t begin, size_t end) {
  return std::accumulate(shape.begin() + static_cast<std::ptrdiff_t>(begin),
                         shape.begin() + static_cast<std::ptrdiff_t>(end), int64_t{1}, std::multiplies<>());
}

Value* integers(Graph& graph, const std::vector<int64_t>& values) {
  return ops::constant(graph, Tensor::from<int64_t>({std::ssize(values)}, values));
}

Value* number(Graph& graph, DataType type, double value) {
  return ops::constant(graph, Tensor::scalar(type, value));
}

Value* reshape(Value* x, const Shape& shape) {
  return x->type().is_static() && shape_of(x) == shape ? x : ops::reshape(x, to_symbolic(shape));
}

Value* broadcast(Value* x, const Shape& shape) {
  return x->type().is_static() && shape_of(x) == shape ? x : ops::broadcast_to(x, to_symbolic(shape));
}

Value* transpose(Value* x, const std::vector<int64_t>& permutation) {
  return std::is_sorted(permutation.begin(), permutation.end()) ? x : ops::transpose(x, permutation);
}

Value* unsqueeze(Value* x, std::vector<int64_t> axes) {
  std::sort(axes.begin(), axes.end());
  Shape shape = shape_of(x);
  for (const int64_t axis : axes) shape.insert(shape.begin() + axis, 1);
  return reshape(x, shape);
}

Value* squeeze(Value* x, const std::vector<int64_t>& axes) {
  Shape shape;
  for (int64_t axis = 0; axis < x->type().rank(); ++axis) {
    if (std::find(axes.begin(), axes.end(), axis) == axes.end()) shape.push_back(extent(x, axis));
  }
  return reshape(x, shape);
}

Value* slice_axis(Value* x, int64_t axis, int64_t start, int64_t limit) {
  if (start == 0 && limit == extent(x, axis)) return x;
  std::vector<int64_t> starts(static_cast<size_t>(x->type().rank()), 0);
  std::vector<int64_t> limits(starts.size(), ops::kWholeAxis);  // whatever the other extents are
  starts[static_cast<size_t>(axis)] = start;
  limits[static_cast<size_t>(axis)] = limit;
  return ops::slice(x, starts, limits);
}

Value* cast_wrapping(Value* x, DataType type) {
  if (x->data_type() == type) return x;
  return ops::apply("cast", {x}, {{"type", type}, {"saturate", false}})->output();
}

DataType computing_type(DataType type) {
  switch (type) {
    case DataType::int8:
    case DataType::uint8:
    case DataType::int16:
    case DataType::uint16:
      return DataType::int32;
    case DataType::uint32:
    case DataType::uint64:
      return DataType::int64;
    default:
      return type;
  }
}

Value* to_computing(Value* x) {
  return cast_wrapping(x, computing_type(x->data_type()));
}

Value* ordered_bits(Value* x) {
  return ops::add(
      x, ops::constant(x->graph(), Tensor::from<int64_t>({}, {std::numeric_limits<int64_t>::min()})));
}

Value* to_comparable(Value* x) {
  return x->data_type() == DataType::uint64 ? ordered_bits(to_computing(x)) : to_computing(x);
}

int64_t broadcast_source(const Shape& own, const Shape& shape, int64_t place) {
  const std::vector<int64_t> strides = row_major_strides(own);
  int64_t source = 0;
  size_t own_axis = own.size();
  for (size_t axis = shape.size(); own_axis > 0;) {
    const int64_t extent = shape[--axis];
    if (own[--own_axis] != 1) source += place % extent * strides[own_axis];
    place /= extent;
  }
  return source;
}

Value* from_computing(Value* y, DataType type) {
  return cast_wrapping(y, type);
}

Value* counted(Graph& graph, const Shape& shape, int64_t axis) {
  return ops::iota(graph, to_symbolic(shape), axis, DataType::int64);
}

Value* unravel(const std::vector<Value*>& indices, const Shape& shape) {
  const std::vector<int64_t> strides = row_major_strides(shape);
  Value* position = nullptr;
  for (size_t axis = 0; axis < indices.size(); ++axis) {
    Graph& graph = indices[axis]->graph();
    Value* term =
        ops::multiply(indices[axis], number(graph, DataType::int64, static_cast<double>(strides[axis])));
    position = position == nullptr ? term : ops::add(position, term);
  }
  return position;
}

}  // namespace tessera::onnx
