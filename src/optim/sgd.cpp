#include "tessera/ops/functions.h"
#include "tessera/optim/registry.h"

#include "optim/common_options.h"

namespace tessera::optim {

Optimizer sgd(const SgdOptions& options) {
  return {.name = "sgd",
          .learning_rate = options.learning_rate,
          .elementwise = true,
          .apply = [options](UpdateContext& context) {
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

namespace {

std::vector<Contradiction> check_nesterov(const Options& options) {
  if (!options.boolean("nesterov") || options.real("momentum") > 0) return {};
  return {{{"momentum", "nesterov"}, "'optimizer.nesterov' needs a 'optimizer.momentum' above 0"}};
}

const SgdOptions kDefaults;
const OptimizerRegistration kRegistration({.name = "sgd",
                                           .options = {learning_rate_option(kDefaults.learning_rate),
                                                       momentum_option(kDefaults.momentum),
                                                       {.key = "nesterov",
                                                        .value = kDefaults.nesterov,
                                                        .documentation = "Nesterov's form of momentum"},
                                                       weight_decay_option(kDefaults.weight_decay)},
                                           .create =
                                               [](const Options& options) {
                                                 return sgd({.learning_rate = options.real("learning_rate"),
                                                             .momentum = options.real("momentum"),
                                                             .nesterov = options.boolean("nesterov"),
                                                             .weight_decay = options.real("weight_decay")});
                                               },
                                           .check = check_nesterov});

}  // namespace
}  // namespace tessera::optim
