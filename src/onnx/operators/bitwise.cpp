// BitwiseAnd, BitwiseOr, BitwiseXor, BitwiseNot, BitShift: on the host, as no operator of the frame works on
// bits.
#include <cstring>

#include "onnx/lowering.h"

namespace tessera::onnx {
namespace {

// Bytes of one element of any integer type, as a number without sign.
uint64_t bits_at(const Tensor& x, int64_t i) {
  uint64_t bits = 0;
  const size_t width = size_of(x.data_type());
  std::memcpy(&bits, static_cast<const std::byte*>(x.raw()) + static_cast<size_t>(i) * width, width);
  return bits;
}

void set_bits(Tensor& x, int64_t i, uint64_t bits) {
  const size_t width = size_of(x.data_type());
  std::memcpy(static_cast<std::byte*>(x.raw()) + static_cast<size_t>(i) * width, &bits, width);
}

using Bits = uint64_t (*)(uint64_t, uint64_t);

void evaluate_bits(HostCall& call, Bits function) {
  const Tensor& a = call.tensor(0);
  const Tensor& b = call.tensor(1);
  call.require(is_integer(a.data_type()) && a.data_type() == b.data_type() && !is_packed(a.data_type()),
               "it takes two tensors of one integer type");
  Tensor y(a.data_type(), broadcast_shapes(a.shape(), b.shape()));
  for (int64_t i = 0; i < y.size(); ++i)
    set_bits(y, i,
             function(bits_at(a, broadcast_source(a.shape(), y.shape(), i)),
                      bits_at(b, broadcast_source(b.shape(), y.shape(), i))));
  call.result(0, y);
}

void evaluate_not(HostCall& call) {
  Tensor y = call.tensor(0).clone();
  call.require(is_integer(y.data_type()) && !is_packed(y.data_type()), "it takes integers");
  for (int64_t i = 0; i < y.size(); ++i) set_bits(y, i, ~bits_at(y, i));
  call.result(0, y);
}

void evaluate_shift(HostCall& call) {
  const std::string direction = call.text("direction", "");
  call.require(direction == "LEFT" || direction == "RIGHT", "its direction is LEFT or RIGHT");
  evaluate_bits(call, direction == "LEFT" ? Bits{[](uint64_t a, uint64_t b) { return b > 63 ? 0 : a << b; }}
                                          : Bits{[](uint64_t a, uint64_t b) { return b > 63 ? 0 : a >> b; }});
}

const RuleRegistrations kRegistration{
    {.name = "BitwiseAnd",
     .evaluate = [](HostCall& call) { evaluate_bits(call, [](uint64_t a, uint64_t b) { return a & b; }); }},
    {.name = "BitwiseOr",
     .evaluate = [](HostCall& call) { evaluate_bits(call, [](uint64_t a, uint64_t b) { return a | b; }); }},
    {.name = "BitwiseXor",
     .evaluate = [](HostCall& call) { evaluate_bits(call, [](uint64_t a, uint64_t b) { return a ^ b; }); }},
    {.name = "BitwiseNot", .evaluate = evaluate_not},
    {.name = "BitShift", .evaluate = evaluate_shift},
};

}  // namespace
}  // namespace tessera::onnx
