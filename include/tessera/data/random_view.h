// What the randomness of a look at an example depends on, beside the example itself.
#pragma once

#include <cstdint>

namespace tessera::data {

struct RandomView {
  uint64_t seed = 0;
  uint64_t epoch = 0;
};

}  // namespace tessera::data
