#include "tessera/ops/functions.h"
#include "tessera/optim/optimizer.h"

namespace tessera::optim {

Optimizer rmsprop(const RmspropOptions& options) {
  return {
      .name = "rmsprop", .learning_rate = options.learning_rate, .apply = [options](UpdateContext& context) {
        Value* w = context.parameter();
        Value* gradient = context.gradient();
        if (options.weight_decay != 0 && context.decays()) {
          gradient = ops::add(gradient, ops::multiply(w, options.weight_decay));
        }
        Value* average = context.state("square_average");
        Value* next = ops::add(ops::multiply(average, options.alpha),
                               ops::multiply(ops::square(gradient), 1 - options.alpha));
        context.update(average, next);
        Value* variance = next;
        if (options.centerd) {
          Value* mean = context.state("gradient_average");
          Value* mean_next =
              ops::add(ops::multiply(mean, options.alpha), ops::multiply(gradient, 1 - options.alpha));
          context.update(mean, mean_next);
          variance = ops::subtract(next, ops::square(mean_next));
        }
        Value* direction = ops::divide(gradient, ops::add(ops::sqrt(variance), options.epsilon));
        if (options.momentum != 0) {
          Value* velocity = context.state("momentum");
          direction = ops::add(ops::multiply(velocity, options.momentum), direction);
          context.update(velocity, direction);
        }
        return ops::subtract(w, ops::multiply(direction, context.learning_rate()));
      }};
}

}  // namespace tessera::optim
