#include "tessera/ops/functions.h"
#include "tessera/optim/registry.h"

#include "optim/common_options.h"

namespace tessera::optim {

Optimizer adagrad(const AdagradOptions& options) {
  return {.name = "adagrad",
          .learning_rate = options.learning_rate,
          .elementwise = true,
          .apply = [options](UpdateContext& context) {
            Value* w = context.parameter();
            Value* gradient = context.gradient();
            if (options.weight_decay != 0 && context.decays())
              gradient = ops::add(gradient, ops::multiply(w, options.weight_decay));
            Value* sum = context.state("square_sum");
            Value* next = ops::add(sum, ops::square(gradient));
            context.update(sum, next);
            Value* direction = ops::divide(gradient, ops::add(ops::sqrt(next), options.epsilon));
            return ops::subtract(w, ops::multiply(direction, context.learning_rate()));
          }};
}

namespace {

const AdagradOptions kDefaults;
const OptimizerRegistration kRegistration({.name = "adagrad",
                                           .options = {learning_rate_option(kDefaults.learning_rate),
                                                       epsilon_option(kDefaults.epsilon),
                                                       weight_decay_option(kDefaults.weight_decay)},
                                           .create = [](const Options& options) {
                                             return adagrad({.learning_rate = options.real("learning_rate"),
                                                             .epsilon = options.real("epsilon"),
                                                             .weight_decay = options.real("weight_decay")});
                                           }});

}  // namespace
}  // namespace tessera::optim
