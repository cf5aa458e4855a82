#include "tessera/ops/functions.h"
#include "tessera/optim/optimizer.h"

namespace tessera::optim {

Optimizer sgd(const SgdOptions& options) {
  return {.name = "sgd", .learning_rate = options.learning_rate, .apply = [options](UpdateContext& context) {
            Value* w = context.parameter();
            Value* direction = context.gradient();
            if (options.weight_decay != 0 && context.decays()) {
              direction = ops::add(direction, ops::multiply(w, options.weight_decay));
            }
            if (options.momentum != 0) {
              Value* velocity = context.state("momentum");
              Value* next = ops::add(ops::multiply(velocity, options.momentum), direction);
              context.update(velocity, next);
              direction =
                  options.nesterov ? ops::add(direction, ops::multiply(next, options.momentum)) : next;
            }
            return ops::subtract(w, ops::multiply(direction, context.learning_rate()));
          }};
}

}  // namespace tessera::optim
