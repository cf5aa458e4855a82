// Adagrad, Adam, Momentum of ai.onnx.preview.training: one step for each of several tensors.
#include "onnx/lowering.h"

namespace tessera::onnx {
namespace {

constexpr const char* kDomain = "ai.onnx.preview.training";

// Operands: the rate, the count of steps before this, then all tensors, all gradients, and all states of each
// kind; results: all tensors, and all states.
size_t tensors_of(const program::Call& call, size_t kinds) {
  call.require(call.operand_count() > 2 && (call.operand_count() - 2) % kinds == 0,
               "it is to have as many gradients and states as tensors");
  return (call.operand_count() - 2) / kinds;
}

Value* scaled(Value* x, Value* scalar) {
  return ops::multiply(x, ops::cast(reshape(scalar, {}), x->data_type()));
}

Value* regularized(LowerCall& call, Value* x, Value* gradient) {
  return ops::add(ops::multiply(x, call.real("norm_coefficient", 0)), gradient);
}

void lower_adagrad(LowerCall& call) {
  const size_t n = tensors_of(call, 3);
  Value* count = reshape(ops::cast(call.operand(1), DataType::fp32), {});
  Value* rate = ops::divide(
      reshape(call.operand(0), {}),
      ops::cast(ops::add(ops::multiply(count, call.real("decay_factor", 0)), 1), call.type(0).data_type));
  for (size_t i = 0; i < n; ++i) {
    Value* x = call.operand(2 + i);
    Value* g = regularized(call, x, call.operand(2 + n + i));
    Value* squares = ops::add(call.operand(2 + 2 * n + i), ops::square(g));
    Value* step = ops::divide(scaled(g, rate), ops::add(ops::sqrt(squares), call.real("epsilon", 0)));
    call.result(i, ops::subtract(x, step));
    call.result(n + i, squares);
  }
}

// Kingma and Ba 2015; the first step, of count 0, is not corrected.
void lower_adam(LowerCall& call) {
  const size_t n = tensors_of(call, 4);
  const double alpha = call.real("alpha", 0.9);
  const double beta = call.real("beta", 0.999);
  Value* count = reshape(ops::cast(call.operand(1), DataType::fp64), {});
  const auto rest = [&](double base) {
    return ops::subtract(1, ops::power(ops::constant_like(count, base), count));
  };
  Value* corrected = ops::divide(ops::sqrt(rest(beta)), rest(alpha));
  Value* one = ops::constant_like(count, 1);
  Value* correction = ops::select(ops::greater(count, ops::constant_like(count, 0)), corrected, one);
  Value* rate = ops::multiply(reshape(ops::cast(call.operand(0), DataType::fp64), {}), correction);
  for (size_t i = 0; i < n; ++i) {
    Value* x = call.operand(2 + i);
    Value* g = regularized(call, x, call.operand(2 + n + i));
    Value* first = ops::add(ops::multiply(call.operand(2 + 2 * n + i), alpha), ops::multiply(g, 1 - alpha));
    Value* second =
        ops::add(ops::multiply(call.operand(2 + 3 * n + i), beta), ops::multiply(ops::square(g), 1 - beta));
    Value* direction = ops::divide(first, ops::add(ops::sqrt(second), call.real("epsilon", 0)));
    Value* next = ops::subtract(x, scaled(direction, rate));
    call.result(i, ops::multiply(next, 1 - call.real("norm_coefficient_post", 0)));
    call.result(n + i, first);
    call.result(2 * n + i, second);
  }
}

void lower_momentum(LowerCall& call) {
  const size_t n = tensors_of(call, 3);
  const double alpha = call.real("alpha", 0);
  const bool nesterov = call.text("mode", "standard") == "nesterov";
  Value* count = reshape(call.operand(1), {});
  Value* later = ops::greater(ops::cast(count, DataType::int64), number(call.graph(), DataType::int64, 0));
  for (size_t i = 0; i < n; ++i) {
    Value* x = call.operand(2 + i);
    Value* g = regularized(call, x, call.operand(2 + n + i));
    // The first gradient counts in full.
    Value* beta = ops::select(later, ops::constant_like(x, call.real("beta", 1)), ops::constant_like(x, 1));
    Value* v = ops::add(ops::multiply(call.operand(2 + 2 * n + i), alpha), ops::multiply(g, beta));
    Value* step = nesterov ? ops::add(g, ops::multiply(v, alpha)) : v;
    call.result(i, ops::subtract(x, scaled(step, call.operand(0))));
    call.result(n + i, v);
  }
}

const RuleRegistrations kRegistration{
    {.name = "Adagrad", .domain = kDomain, .lower = lower_adagrad},
    {.name = "Adam", .domain = kDomain, .lower = lower_adam},
    {.name = "Momentum", .domain = kDomain, .lower = lower_momentum},
};

}  // namespace
}  // namespace tessera::onnx
