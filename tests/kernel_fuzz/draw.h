// Choices that follow from a seed.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "tessera/base/random.h"

namespace tessera::testing {

class Draw {
 public:
  explicit Draw(uint64_t seed) : random_(seed, 91) {}

  // A whole number in [0, bound); bound > 0.
  int64_t below(int64_t bound) {
    return static_cast<int64_t>(random_.below(counter_++, static_cast<uint64_t>(bound)));
  }
  // In [low, high], both included.
  int64_t between(int64_t low, int64_t high) { return low + below(high - low + 1); }
  bool chance(int64_t percent) { return below(100) < percent; }
  template <typename T>
  const T& pick(const std::vector<T>& list) {
    return list.at(static_cast<size_t>(below(static_cast<int64_t>(list.size()))));
  }
  // In [low, high).
  double uniform(double low, double high) {
    return low + (high - low) * static_cast<double>(random_.uniform(counter_++));
  }
  // An extent as networks have them seldom: mostly odd and small, at times large, a power of two, or its
  // neighbor. At least 1.
  int64_t extent(int64_t most);

 private:
  Random random_;
  uint64_t counter_ = 0;
};

}  // namespace tessera::testing
