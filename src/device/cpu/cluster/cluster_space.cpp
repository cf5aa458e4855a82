#include "device/cpu/cluster/cluster_space.h"

#include <algorithm>

namespace tessera::cpu {
Tiling::Tiling(const IterationSpace& space, int64_t capacity) : inner_(std::max<int64_t>(space.inner(), 1)) {
  if (inner_ <= capacity) {
    rows_ = std::max<int64_t>(capacity / inner_, 1);
    columns_ = inner_;
  } else {
    // Parts of nearly equal length, so that the last is no straggler.
    const int64_t parts = (inner_ + capacity - 1) / capacity;
    columns_ = std::min(capacity, ((inner_ + parts - 1) / parts + 63) / 64 * 64);
    tiles_per_row_ = (inner_ + columns_ - 1) / columns_;
  }
}

int64_t Tiling::count(int64_t first, int64_t last) const {
  return whole_rows() ? (last - first + rows_ - 1) / rows_ : (last - first) * tiles_per_row_;
}

Tile Tiling::tile(int64_t first, int64_t last, int64_t index) const {
  if (whole_rows()) {
    const int64_t row = first + index * rows_;
    return {row, std::min(rows_, last - row), 0, columns_};
  }
  const int64_t column = index % tiles_per_row_ * columns_;
  return {first + index / tiles_per_row_, 1, column, std::min(columns_, inner_ - column)};
}

RowCounter::RowCounter(const IterationSpace& space, int64_t row)
    : extents_(space.extents.data()), axes_(space.extents.size() - 1) {
  for (size_t axis = axes_; axis-- > 0;) {
    indices_[axis] = row % extents_[axis];
    row /= extents_[axis];
  }
}

void RowCounter::step(int64_t rows) {
  for (size_t axis = axes_; axis-- > 0;) {
    indices_[axis] += rows;
    if (indices_[axis] < extents_[axis]) return;
    rows = indices_[axis] / extents_[axis];
    indices_[axis] %= extents_[axis];
  }
}

int64_t RowCounter::offset(const std::vector<int64_t>& strides) const {
  int64_t offset = 0;
  for (size_t axis = 0; axis < axes_; ++axis) offset += indices_[axis] * strides[axis];
  return offset;
}

int64_t RowCounter::run() const {
  return axes_ == 0 ? 1 : extents_[axes_ - 1] - indices_[axes_ - 1];
}

}  // namespace tessera::cpu
