// Copying between strided views: for transpose, concat, split, slice, pad and broadcasts of any type.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "tessera/device/common/strided_move.h"

namespace tessera::cpu {

using backend::StridedView;

// target[to] = source[from] for every index of a shape, in parallel.
class StridedCopy {
 public:
  StridedCopy(const Shape& shape, StridedView from, StridedView to, int64_t element_bytes);
  void run(const void* source, void* target) const;

 private:
  struct Axis {
    int64_t extent;
    int64_t from;
    int64_t to;
  };

  template <typename T>
  void run_typed(const T* source, T* target) const;
  template <typename T>
  void copy_transposed(const T* source, T* target, int64_t extent, int64_t stride) const;

  std::vector<Axis> axes_;   // merged, the one of the smallest target stride last
  std::vector<Axis> outer_;  // all but those of the innermost loops
  // Where the source runs along another axis than the target, the innermost loops are two: axes_.back() and
  // stripes of this one; outer_[crossing_axis_] counts the stripes.
  static constexpr size_t kNone = SIZE_MAX;
  size_t crossing_axis_ = kNone;
  Axis crossing_{1, 0, 0};
  int64_t from_offset_ = 0;
  int64_t to_offset_ = 0;
  int64_t elements_ = 1;
  int64_t bytes_ = 4;
};

}  // namespace tessera::cpu
