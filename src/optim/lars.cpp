#include "tessera/optim/optimizer.h"

#include "optim/trust_ratio.h"

namespace tessera::optim {

Optimizer lars(const LarsOptions& options) {
  return {.name = "lars", .learning_rate = options.learning_rate, .apply = [options](UpdateContext& context) {
            Value* w = context.parameter();
            Value* direction = context.gradient();
            Value* rate = context.learning_rate();
            if (context.decays()) {
              Value* weight_norm = norm(w);
              Value* gradient_norm = norm(direction);
              Value* divisor = ops::add(
                  ops::add(gradient_norm, ops::multiply(weight_norm, options.weight_decay)), options.epsilon);
              Value* ratio = ops::divide(ops::multiply(weight_norm, options.eta), divisor);
              rate = ops::multiply(rate, trusted(ratio, weight_norm, gradient_norm));
              direction = ops::add(direction, ops::multiply(w, options.weight_decay));
            }
            Value* velocity = context.state("momentum");
            Value* move = ops::multiply(direction, rate);
            Value* next = ops::add(ops::multiply(velocity, options.momentum), move);
            context.update(velocity, next);
            if (options.nesterov)
              return ops::subtract(w, ops::add(ops::multiply(next, options.momentum), move));
            return ops::subtract(w, next);
          }};
}

}  // namespace tessera::optim
