// Cutting the iteration space of a cluster into tiles.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "tessera/device/common/cluster_body.h"

namespace tessera::cpu {

using backend::broadcasts_to;
using backend::cluster_body;
using backend::IterationSpace;
using backend::make_space;
using backend::reduced_axes;

// A block of the space that is worked on at once: whole rows, or a part of one row.
struct Tile {
  int64_t row = 0;
  int64_t rows = 0;
  int64_t column = 0;
  int64_t columns = 0;
  int64_t elements() const { return rows * columns; }
};

// Cuts a space into tiles of at most `capacity` elements.
class Tiling {
 public:
  Tiling() = default;
  Tiling(const IterationSpace& space, int64_t capacity);

  bool whole_rows() const { return columns_ == inner_; }
  int64_t rows_per_tile() const { return rows_; }
  int64_t columns_per_tile() const { return columns_; }
  int64_t tiles_per_row() const { return tiles_per_row_; }  // 1 for whole rows
  // Tiles of the rows [first, last), row by row.
  int64_t count(int64_t first, int64_t last) const;
  Tile tile(int64_t first, int64_t last, int64_t index) const;

 private:
  int64_t inner_ = 1;
  int64_t rows_ = 1;
  int64_t columns_ = 1;
  int64_t tiles_per_row_ = 1;
};

// The indices of a row along the outer axes, stepping through consecutive rows.
class RowCounter {
 public:
  static constexpr size_t kMaximumAxes = 16;
  RowCounter(const IterationSpace& space, int64_t row);
  void step(int64_t rows = 1);
  int64_t offset(const std::vector<int64_t>& strides) const;
  // How many more rows follow, this one included, before the last outer axis starts again.
  int64_t run() const;

 private:
  const int64_t* extents_;
  size_t axes_;  // the outer ones
  std::array<int64_t, kMaximumAxes> indices_{};
};

}  // namespace tessera::cpu
