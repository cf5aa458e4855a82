#include "tessera/optim/registry.h"

#include "optim/common_options.h"
#include "optim/trust_ratio.h"

namespace tessera::optim {

Optimizer lars(const LarsOptions& options) {
  return {.name = "lars",
          .learning_rate = options.learning_rate,
          .by_norms = true,
          .apply = [options](UpdateContext& context) {
            Value* w = context.parameter();
            Value* direction = context.gradient();
            Value* rate = context.learning_rate();
            if (context.decays()) {
              const std::vector<Value*> norms = context.norms({w, direction});
              Value* weight_norm = norms[0];
              Value* gradient_norm = norms[1];
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

namespace {

const LarsOptions kDefaults;
const OptimizerRegistration kRegistration(
    {.name = "lars",
     .options = {learning_rate_option(kDefaults.learning_rate),
                 momentum_option(kDefaults.momentum),
                 weight_decay_option(kDefaults.weight_decay),
                 {.key = "trust",
                  .value = kDefaults.eta,
                  .documentation =
                      "Trust coefficient: each layer's update as a fraction of its weights' norm",
                  .limits = Limits::above(0)},
                 epsilon_option(kDefaults.epsilon)},
     .create = [](const Options& options) {
       return lars({.learning_rate = options.real("learning_rate"),
                    .momentum = options.real("momentum"),
                    .weight_decay = options.real("weight_decay"),
                    .eta = options.real("trust"),
                    .epsilon = options.real("epsilon")});
     }});

}  // namespace
}  // namespace tessera::optim
