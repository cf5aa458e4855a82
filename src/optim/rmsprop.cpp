#include "tessera/ops/functions.h"
#include "tessera/optim/registry.h"

#include "optim/common_options.h"

namespace tessera::optim {

Optimizer rmsprop(const RmspropOptions& options) {
  return {.name = "rmsprop",
          .learning_rate = options.learning_rate,
          .elementwise = true,
          .apply = [options](UpdateContext& context) {
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
            if (options.centered) {
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

namespace {

const RmspropOptions kDefaults;
const OptimizerRegistration kRegistration(
    {.name = "rmsprop",
     .options = {learning_rate_option(kDefaults.learning_rate),
                 {.key = "alpha",
                  .value = kDefaults.alpha,
                  .documentation = "Decay of the mean square of the gradient",
                  .limits = Limits::fraction()},
                 epsilon_option(kDefaults.epsilon),
                 momentum_option(kDefaults.momentum),
                 weight_decay_option(kDefaults.weight_decay)},
     .create = [](const Options& options) {
       return rmsprop({.learning_rate = options.real("learning_rate"),
                       .alpha = options.real("alpha"),
                       .epsilon = options.real("epsilon"),
                       .momentum = options.real("momentum"),
                       .weight_decay = options.real("weight_decay")});
     }});

}  // namespace
}  // namespace tessera::optim
