#include "tessera/optim/registry.h"

#include "optim/common_options.h"
#include "optim/moments.h"
#include "optim/trust_ratio.h"

namespace tessera::optim {

Optimizer lamb(const LambOptions& options) {
  return {.name = "lamb",
          .learning_rate = options.learning_rate,
          .needs_step = true,
          .by_norms = true,
          .apply = [options](UpdateContext& context) {
            Value* w = context.parameter();
            Value* direction = adaptive_direction(context, context.gradient(), options.beta1, options.beta2,
                                                  options.epsilon);
            if (context.decays() && options.weight_decay != 0)
              direction = ops::add(direction, ops::multiply(w, options.weight_decay));
            if (context.decays() || options.trust_all) {
              const std::vector<Value*> norms = context.norms({w, direction});
              Value* weight_norm = norms[0];
              Value* direction_norm = norms[1];
              direction = ops::multiply(
                  direction, trusted(ops::divide(weight_norm, direction_norm), weight_norm, direction_norm));
            }
            return ops::subtract(w, ops::multiply(direction, context.learning_rate()));
          }};
}

namespace {

const LambOptions kDefaults;
const OptimizerRegistration kRegistration(
    {.name = "lamb",
     .options = {learning_rate_option(kDefaults.learning_rate),
                 beta1_option(kDefaults.beta1),
                 beta2_option(kDefaults.beta2),
                 epsilon_option(kDefaults.epsilon),
                 weight_decay_option(kDefaults.weight_decay),
                 {.key = "trust_all",
                  .value = kDefaults.trust_all,
                  .documentation =
                      "Whether parameters that are not decayed have trust ratios too, as NVLAMB has "
                      "it; together with `train.clip_norm = 1.0`"}},
     .create = [](const Options& options) {
       return lamb({.learning_rate = options.real("learning_rate"),
                    .beta1 = options.real("beta1"),
                    .beta2 = options.real("beta2"),
                    .epsilon = options.real("epsilon"),
                    .weight_decay = options.real("weight_decay"),
                    .trust_all = options.boolean("trust_all")});
     }});

}  // namespace
}  // namespace tessera::optim
