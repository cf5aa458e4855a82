#include "optim/moments.h"

namespace tessera::optim {
namespace {

Optimizer adam_like(const char* name, const AdamOptions& options, bool decoupled) {
  return {.name = name,
          .learning_rate = options.learning_rate,
          .needs_step = true,
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

}  // namespace tessera::optim
