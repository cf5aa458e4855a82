// Consecutive places: channels, squares, taps.
#pragma once

#include <cstdint>

namespace tessera::cpu {

struct Range {
  int64_t begin = 0;
  int64_t end = 0;
  int64_t size() const { return end - begin; }
};

}  // namespace tessera::cpu
