#include "optim/moments.h"

namespace tessera::optim {

Value* adaptive_direction(UpdateContext& context, Value* gradient, double beta1, double beta2,
                          double epsilon) {
  Value* first = context.state("first_moment");
  Value* second = context.state("second_moment");
  Value* first_next = ops::add(ops::multiply(first, beta1), ops::multiply(gradient, 1 - beta1));
  Value* second_next =
      ops::add(ops::multiply(second, beta2), ops::multiply(ops::square(gradient), 1 - beta2));
  context.update(first, first_next);
  context.update(second, second_next);
  const auto correction = [&](double beta) {  // 1 - beta^step
    Value* step = context.step();
    return ops::subtract(1, ops::power(ops::constant_like(step, beta), step));
  };
  Value* deviation = ops::sqrt(ops::divide(second_next, correction(beta2)));
  return ops::divide(ops::divide(first_next, correction(beta1)), ops::add(deviation, epsilon));
}

}  // namespace tessera::optim
