// Examples of each class equally often: the key data.balanced.
#pragma once

#include <string>
#include <vector>

#include "tessera/base/option.h"

namespace tessera::tasks {

// `examples`: what the data is of, such as "images".
inline Option balanced_option(const std::string& examples) {
  return {.key = "balanced",
          .value = false,
          .documentation = "Whether an epoch has " + examples +
                           " of each class equally often: of a rare class each several times, of a frequent "
                           "one a part that is another in each epoch",
          .resuming = Resuming::fixed};
}

inline void check_balanced(const Options& settings, std::vector<Contradiction>& found) {
  if (!settings.boolean("data.balanced") || settings.boolean("data.shuffle")) return;
  found.push_back({{"data.balanced", "data.shuffle"},
                   "balanced examples ('data.balanced') come in a random order ('data.shuffle')"});
}

}  // namespace tessera::tasks
