// Constant, ConstantOfShape, Shape, Size, Range, EyeLike, Identity.
#include <cmath>

#include "onnx/lowering.h"
#include "onnx/types.h"

namespace tessera::onnx {
namespace {

Tensor number_tensor(const LowerCall& call) {
  if (call.has_argument("value_float"))
    return Tensor::from<float>({}, {static_cast<float>(call.real("value_float", 0))});
  if (call.has_argument("value_int")) return Tensor::from<int64_t>({}, {call.integer("value_int")});
  if (call.has_argument("value_floats")) {
    const std::vector<double> values = call.reals("value_floats");
    return Tensor::from_doubles(DataType::fp32, {std::ssize(values)}, values);
  }
  call.require(call.has_argument("value_ints"), "it has no value");
  const std::vector<int64_t> values = call.integers("value_ints");
  return Tensor::from<int64_t>({std::ssize(values)}, values);
}

void lower_constant(LowerCall& call) {
  for (const char* name : {"value", "sparse_value"}) {
    const Item item = call.item(name);
    if (item.tensor() != nullptr) return call.result(0, *item.tensor());
    if (!item.absent()) call.leave_to_host("texts are on the host");
  }
  if (call.has_argument("value_string") || call.has_argument("value_strings"))
    call.leave_to_host("texts are on the host");
  call.result(0, number_tensor(call));
}

void evaluate_constant(HostCall& call) {
  if (!call.item("value").absent()) return call.result(0, call.item("value"));
  if (call.has_argument("value_string"))
    return call.result(0, TextTensor{{}, {call.text("value_string", "")}});
  const std::vector<std::string> values = call.texts("value_strings");
  call.result(0, TextTensor{{std::ssize(values)}, values});
}

void lower_constant_of_shape(LowerCall& call) {
  const Item item = call.item("value");
  const Tensor value = item.tensor() != nullptr ? *item.tensor() : Tensor::scalar(DataType::fp32, 0);
  call.require(value.size() == 1, "its value is to have one element");
  const Shape shape = call.known_integers(0);
  for (const int64_t extent : shape) call.require(extent >= 0, "a shape has no negative extents");
  call.result(0, broadcast(ops::constant(call.graph(), value.reshape({})), shape));
}

void lower_shape(LowerCall& call) {
  const Shape shape = call.type(0).static_shape();
  const auto rank = std::ssize(shape);
  const auto place = [&](const char* name, int64_t otherwise) {
    const int64_t axis = call.integer(name, otherwise);
    return std::clamp<int64_t>(axis < 0 ? axis + rank : axis, 0, rank);
  };
  const int64_t start = place("start", 0);
  const int64_t end = std::max(start, place("end", rank));
  const std::vector<int64_t> part(shape.begin() + start, shape.begin() + end);
  call.result(0, Tensor::from<int64_t>({std::ssize(part)}, part));
}

void lower_range(LowerCall& call) {
  const DataType type = call.type(0).data_type;
  Graph& graph = call.graph();
  constexpr double kMost = 0x1p47;
  int64_t count = 0;
  if (is_floating(type)) {
    const double extent = std::ceil((known_number(call, 1) - known_number(call, 0)) / known_number(call, 2));
    call.require(!std::isnan(extent) && extent < kMost, "its limits and step make no range");
    count = std::max<int64_t>(0, static_cast<int64_t>(extent));
  } else {
    const int64_t start = known_integer(call, 0);
    const int64_t limit = known_integer(call, 1);
    const int64_t step = known_integer(call, 2);
    call.require(step != 0, "its step is 0");
    const double extent =
        std::ceil((static_cast<double>(limit) - static_cast<double>(start)) / static_cast<double>(step));
    call.require(extent < kMost, "its limits and step make no range");
    count = std::max<int64_t>(0, static_cast<int64_t>(extent));
  }
  const DataType computing = is_floating(type) ? type : DataType::int64;
  Value* index = ops::iota(graph, {count}, 0, computing);
  Value* start = ops::cast(call.operand(0), computing);
  Value* step = ops::cast(call.operand(2), computing);
  call.result(0, from_computing(ops::add(ops::multiply(index, reshape(step, {})), reshape(start, {})), type));
}

void lower_eye_like(LowerCall& call) {
  const TensorType like = call.type(0);
  call.require(like.rank() == 2, "its operand is to be a matrix");
  const Shape shape = like.static_shape();
  Graph& graph = call.graph();
  Value* diagonal =
      ops::equal(ops::add(counted(graph, shape, 0),
                          number(graph, DataType::int64, static_cast<double>(call.integer("k", 0)))),
                 counted(graph, shape, 1));
  call.result(0, ops::cast(diagonal, call.has_argument("dtype") ? data_type_of(call.integer("dtype"))
                                                                : like.data_type));
}

const RuleRegistrations kRegistration{
    {.name = "Constant", .lower = lower_constant, .evaluate = evaluate_constant},
    {.name = "ConstantOfShape", .lower = lower_constant_of_shape},
    {.name = "Shape",
     .lower = lower_shape,
     .evaluate =
         [](HostCall& call) {
           const Shape& shape = call.text_tensor(0).shape;
           call.result(0, Tensor::from<int64_t>({std::ssize(shape)}, shape));
         }},
    {.name = "Size",
     .lower =
         [](LowerCall& call) { call.result(0, Tensor::from<int64_t>({}, {call.type(0).element_count()})); }},
    {.name = "Range", .lower = lower_range},
    {.name = "EyeLike", .lower = lower_eye_like},
    {.name = "Identity",
     .lower = [](LowerCall& call) { call.result(0, call.operand(0)); },
     .evaluate = [](HostCall& call) { call.result(0, call.operand(0)); }},
};

}  // namespace
}  // namespace tessera::onnx
