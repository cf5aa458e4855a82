#include "tessera/optim/registry.h"

#include "optim/common_options.h"
#include "optim/moments.h"

namespace tessera::optim {
namespace {

Optimizer adam_like(const char* name, const AdamOptions& options, bool decoupled) {
  return {.name = name,
          .learning_rate = options.learning_rate,
          .needs_step = true,
          .elementwise = true,
          .apply = [options, decoupled](UpdateContext& context) {
            Value* w = context.parameter();
            Value* gradient = context.gradient();
            const bool decays = options.weight_decay != 0 && context.decays();
            if (decays && !decoupled) gradient = ops::add(gradient, ops::multiply(w, options.weight_decay));
            Value* direction =
                adaptive_direction(context, gradient, options.beta1, options.beta2, options.epsilon);
            if (decays && decoupled) direction = ops::add(direction, ops::multiply(w, options.weight_decay));
            return ops::subtract(w, ops::multiply(direction, context.learning_rate()));
          }};
}

}  // namespace

Optimizer adam(const AdamOptions& options) {
  return adam_like("adam", options, false);
}
Optimizer adamw(const AdamOptions& options) {
  return adam_like("adamw", options, true);
}

namespace {

const AdamOptions kDefaults;

std::vector<Option> adam_options() {
  return {learning_rate_option(kDefaults.learning_rate), beta1_option(kDefaults.beta1),
          beta2_option(kDefaults.beta2), epsilon_option(kDefaults.epsilon),
          weight_decay_option(kDefaults.weight_decay)};
}

AdamOptions read_options(const Options& options) {
  return {.learning_rate = options.real("learning_rate"),
          .beta1 = options.real("beta1"),
          .beta2 = options.real("beta2"),
          .epsilon = options.real("epsilon"),
          .weight_decay = options.real("weight_decay")};
}

const OptimizerRegistration kAdam({.name = "adam",
                                   .options = adam_options(),
                                   .create = [](const Options& options) {
                                     return adam(read_options(options));
                                   }});
const OptimizerRegistration kAdamW({.name = "adamw",
                                    .options = adam_options(),
                                    .create = [](const Options& options) {
                                      return adamw(read_options(options));
                                    }});

}  // namespace
}  // namespace tessera::optim
