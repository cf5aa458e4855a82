// Keys of a network whose size has a name: each number is the size's unless the recipe says another.
#pragma once

#include <cstdint>
#include <string>

#include "tessera/base/option.h"

namespace tessera::tasks {

// A whole number, 0 where the size says it.
inline Option sized_option(const std::string& key, const std::string& documentation) {
  return {.key = key,
          .value = int64_t{0},
          .documentation = documentation + "; 0: as the size says",
          .limits = Limits::between(0, 65536)};
}

// Over the number of the size.
inline void take_if_said(const Options& settings, const char* key, int64_t& value) {
  if (const int64_t given = settings.integer(key); given > 0) value = given;
}

}  // namespace tessera::tasks
