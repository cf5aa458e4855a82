// What networks that register themselves share.
#pragma once

#include "tessera/models/registry.h"

namespace tessera::models {

inline constexpr ClassifierOptions kDigits{.classes = 10, .image_size = 28, .channels = 1};

inline Option dropout_option(double value) {
  return {.key = "dropout",
          .value = value,
          .documentation = "Probability of dropping a unit of the last layers",
          .limits = Limits::fraction()};
}

inline DropoutClassifierOptions with_dropout(const ClassifierOptions& options, const Options& own) {
  return {.classes = options.classes,
          .image_size = options.image_size,
          .channels = options.channels,
          .dropout = own.real("dropout")};
}

}  // namespace tessera::models
