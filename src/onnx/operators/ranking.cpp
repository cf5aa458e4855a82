// ArgMax, ArgMin, TopK, CumSum, CumProd, Hardmax, Softmax, LogSoftmax.
#include "onnx/lowering.h"

namespace tessera::onnx {
namespace {

// A value whose largest elements are those that are smallest in x; of integers without overflow.
Value* opposite(Value* x) {
  if (is_floating(x->data_type())) return ops::negate(x);
  return ops::subtract(ops::negate(x), number(x->graph(), x->data_type(), 1));
}

Value* reversed(Value* x, int64_t axis) {
  const int64_t size = extent(x, axis);
  std::vector<int64_t> places;
  for (int64_t i = size; i-- > 0;) places.push_back(i);
  return ops::gather(x, integers(x->graph(), places), axis);
}

template <bool largest>
void lower_arg_extremum(LowerCall& call) {
  Value* x = to_computing(call.operand(0));
  const int64_t axis = axis_of(call, call.integer("axis", 0), x->type().rank());
  const int64_t size = extent(x, axis);
  const bool takes_last = call.integer("select_last_index", 0) != 0;
  if (!largest) x = opposite(x);
  if (takes_last) x = reversed(x, axis);
  Value* place = ops::cast(ops::argmax(x, axis, call.integer("keepdims", 1) != 0), DataType::int64);
  if (takes_last)
    place = ops::subtract(number(call.graph(), DataType::int64, static_cast<double>(size - 1)), place);
  call.result(0, place);
}

void lower_top_k(LowerCall& call) {
  const DataType type = call.type(0).data_type;
  Value* x = to_computing(call.operand(0));
  const int64_t rank = x->type().rank();
  const int64_t k = call.version() < 10 ? call.integer("k") : known_integer(call, 1);
  const int64_t axis = axis_of(call, call.integer("axis", -1), rank);
  const bool largest = call.integer("largest", 1) != 0;
  call.require(k >= 0 && k <= extent(x, axis), "k is larger than the axis");
  std::vector<int64_t> to_last;
  for (int64_t i = 0; i < rank; ++i) to_last.push_back(i == axis ? rank - 1 : i == rank - 1 ? axis : i);
  Value* rows = transpose(x, to_last);
  if (!largest) rows = opposite(rows);
  const ops::TopK found = ops::top_k(rows, k);
  Value* values = largest ? found.values : opposite(found.values);
  call.result(0, from_computing(transpose(values, to_last), type));
  call.result(1, ops::cast(transpose(found.indices, to_last), DataType::int64));
}

void lower_cumulative_sum(LowerCall& call) {
  const DataType type = call.type(0).data_type;
  Value* x = to_computing(call.operand(0));
  const int64_t axis = axis_of(call, known_integer(call, 1), x->type().rank());
  const ops::CumulativeSumOptions options{axis, call.integer("exclusive", 0) != 0,
                                          call.integer("reverse", 0) != 0};
  call.result(0, from_computing(ops::cumulative_sum(x, options), type));
}

// x moved along an axis by some places, with ones where nothing comes from.
Value* shifted(Value* x, int64_t axis, int64_t places) {
  const int64_t size = extent(x, axis);
  std::vector<int64_t> low(static_cast<size_t>(x->type().rank()), 0);
  low[static_cast<size_t>(axis)] = std::min(places, size);
  return ops::pad(slice_axis(x, axis, 0, std::max<int64_t>(0, size - places)), low,
                  std::vector<int64_t>(low.size(), 0), 1);
}

// Products over distances that double (Hillis and Steele 1986, "Data Parallel Algorithms").
void lower_cumulative_product(LowerCall& call) {
  const DataType type = call.type(0).data_type;
  Value* x = to_computing(call.operand(0));
  const int64_t axis = axis_of(call, known_integer(call, 1), x->type().rank());
  const bool reverse = call.integer("reverse", 0) != 0;
  if (reverse) x = reversed(x, axis);
  if (call.integer("exclusive", 0) != 0) x = shifted(x, axis, 1);
  for (int64_t distance = 1; distance < extent(x, axis); distance *= 2)
    x = ops::multiply(x, shifted(x, axis, distance));
  call.result(0, from_computing(reverse ? reversed(x, axis) : x, type));
}

// Before opset 13 the axes from the given one on count as one.
template <Value* (*function)(Value*, int64_t)>
void lower_softmax(LowerCall& call) {
  Value* x = call.operand(0);
  const Shape shape = shape_of(x);
  const bool joins = call.version() < 13;
  const int64_t axis = axis_of(call, call.integer("axis", joins ? 1 : -1), std::ssize(shape));
  if (!joins) return call.result(0, function(x, axis));
  const auto split = static_cast<size_t>(axis);
  const Shape rows{product(shape, 0, split), product(shape, split, shape.size())};
  call.result(0, reshape(function(reshape(x, rows), 1), shape));
}

Value* hardmax(Value* x, int64_t axis) {
  Value* place = ops::cast(ops::argmax(x, axis, true), DataType::int64);
  return ops::cast(ops::equal(place, counted(x->graph(), shape_of(x), axis)), x->data_type());
}

const RuleRegistrations kRegistration{
    {.name = "ArgMax", .lower = lower_arg_extremum<true>},
    {.name = "ArgMin", .lower = lower_arg_extremum<false>},
    {.name = "TopK", .lower = lower_top_k},
    {.name = "CumSum", .lower = lower_cumulative_sum},
    {.name = "CumProd", .lower = lower_cumulative_product},
    {.name = "Softmax", .lower = lower_softmax<ops::softmax>},
    {.name = "LogSoftmax", .lower = lower_softmax<ops::log_softmax>},
    {.name = "Hardmax", .lower = lower_softmax<hardmax>},
};

}  // namespace
}  // namespace tessera::onnx
