// Options that several optimizers or schedules have, each with its own default.
#pragma once

#include "tessera/base/option.h"

namespace tessera::optim {

inline Option learning_rate_option(double rate) {
  return {.key = "learning_rate",
          .value = rate,
          .documentation = "Peak of the learning rate",
          .limits = Limits::above(0)};
}

inline Option momentum_option(double momentum) {
  return {.key = "momentum",
          .value = momentum,
          .documentation = "Share of the previous update that is kept",
          .limits = Limits::fraction()};
}

inline Option weight_decay_option(double decay) {
  return {.key = "weight_decay",
          .value = decay,
          .documentation =
              "Pull of the weights towards zero: added to the gradient, by `adamw` and `lamb` to the update",
          .limits = Limits::at_least(0)};
}

inline Option beta1_option(double beta) {
  return {.key = "beta1",
          .value = beta,
          .documentation = "Decay of the mean of the gradient",
          .limits = Limits::fraction()};
}

inline Option beta2_option(double beta) {
  return {.key = "beta2",
          .value = beta,
          .documentation = "Decay of the mean of its square",
          .limits = Limits::fraction()};
}

inline Option epsilon_option(double epsilon) {
  return {.key = "epsilon",
          .value = epsilon,
          .documentation = "Added to a denominator that may vanish",
          .limits = {.low = 0, .high = 1, .low_open = true}};
}

}  // namespace tessera::optim
