// Cast, CastLike, BitCast.
#include <charconv>
#include <cmath>
#include <optional>

#include "tessera/base/text.h"

#include "onnx/lowering.h"
#include "onnx/types.h"

namespace tessera::onnx {
namespace {

// The spellings of numbers as texts: those of NumPy, with as many digits as tell the number.
std::string text_of(const Tensor& x, int64_t i) {
  const DataType type = x.data_type();
  if (type == DataType::boolean) return x.at(i) != 0 ? "True" : "False";
  if (!is_floating(type)) {
    if (type == DataType::uint64) return std::to_string(x.data<uint64_t>()[static_cast<size_t>(i)]);
    return std::to_string(static_cast<int64_t>(
        type == DataType::int64 ? x.data<int64_t>()[static_cast<size_t>(i)] : static_cast<int64_t>(x.at(i))));
  }
  const double value = x.at(i);
  if (std::isnan(value)) return "NaN";
  if (std::isinf(value)) return value > 0 ? "INF" : "-INF";
  char digits[64];
  const auto end = type == DataType::fp64
                       ? std::to_chars(digits, std::end(digits), value).ptr
                       : std::to_chars(digits, std::end(digits), static_cast<float>(value)).ptr;
  return {digits, end};
}

double number_of(const std::string& text, const HostCall& call) {
  const std::optional<double> value = parse_real(text.starts_with('+') ? text.substr(1) : text);
  call.require(value.has_value(), "'" + text + "' is no number");
  return *value;
}

Tensor numbers_of(const TextTensor& texts, DataType type, const HostCall& call) {
  Tensor result(type, texts.shape);
  for (size_t i = 0; i < texts.values.size(); ++i) {
    const std::string& text = texts.values[i];
    const std::optional<int64_t> whole = parse_integer(text);
    if (type == DataType::int64 && whole.has_value()) {
      result.data<int64_t>()[i] = *whole;
    } else {
      result.set(static_cast<int64_t>(i), number_of(text, call));
    }
  }
  return result;
}

void evaluate_cast_to(HostCall& call, int64_t code) {
  if (code != kTextCode) {
    call.result(0, call.operand(0).text() != nullptr
                       ? numbers_of(call.text_tensor(0), data_type_of(code), call)
                       : call.tensor(0).cast(data_type_of(code)));
    return;
  }
  if (call.operand(0).text() != nullptr) return call.result(0, call.operand(0));
  const Tensor& x = call.tensor(0);
  TextTensor texts{x.shape(), {}};
  for (int64_t i = 0; i < x.size(); ++i) texts.values.push_back(text_of(x, i));
  call.result(0, std::move(texts));
}

// To a power of two that is not less, or not more, from the nearest one.
Value* cast_to_power(LowerCall& call, Value* x) {
  const std::string mode = call.text("round_mode", "up");
  Value* magnitude = ops::absolute(ops::cast(x, DataType::fp32));
  Value* nearest = ops::cast(ops::cast(magnitude, DataType::fp8_e8m0), DataType::fp32);
  if (mode == "up") nearest = ops::select(ops::less(nearest, magnitude), ops::multiply(nearest, 2), nearest);
  if (mode == "down")
    nearest = ops::select(ops::greater(nearest, magnitude), ops::multiply(nearest, 0.5), nearest);
  return nearest;
}

// Of what an 8-bit floating type cannot hold the attribute speaks. What an integer cannot hold is undefined:
// those of less than a byte keep the lowest bits, as the format's own tests want it, others saturate;
// integers of integers keep the lowest bits, as in C.
void lower_cast_to(LowerCall& call, int64_t code) {
  if (code == kTextCode) call.leave_to_host("texts are made on the host");
  const DataType type = data_type_of(code);
  Value* x = call.operand(0);
  if (x->data_type() == type) return call.result(0, x);
  if (is_packed(type) && is_integer(type) && is_floating(x->data_type())) x = ops::cast(x, DataType::int32);
  if (type == DataType::fp8_e8m0 && is_floating(x->data_type())) x = cast_to_power(call, x);
  const bool narrow_float = is_floating(type) && bits_of(type) <= 8;
  const bool saturate = narrow_float ? call.integer("saturate", 1) != 0 : !is_integer(x->data_type());
  call.result(0, ops::apply("cast", {x}, {{"type", type}, {"saturate", saturate}})->output());
}

void evaluate_cast_like(HostCall& call) {
  evaluate_cast_to(call, call.operand(1).text() != nullptr ? kTextCode : code_of(call.tensor(1).data_type()));
}

// The same bytes; rows of narrower elements are the last axis of a wider one's.
void evaluate_bit_cast(HostCall& call) {
  const Tensor& x = call.tensor(0);
  const DataType type = data_type_of(call.integer("to"));
  call.require(bits_of(type) == bits_of(x.data_type()), "both types must have as many bits");
  call.result(0, Tensor::share(type, x.shape(), x.owner()));
}

const RuleRegistrations kRegistration{
    {.name = "Cast",
     .lower = [](LowerCall& call) { lower_cast_to(call, call.integer("to")); },
     .evaluate = [](HostCall& call) { evaluate_cast_to(call, call.integer("to")); }},
    {.name = "CastLike",
     .lower = [](LowerCall& call) { lower_cast_to(call, code_of(call.type(1).data_type)); },
     .evaluate = evaluate_cast_like},
    {.name = "BitCast", .evaluate = evaluate_bit_cast},
};

}  // namespace
}  // namespace tessera::onnx
