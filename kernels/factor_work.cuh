// Elementwise work on the first factor of the products of product_cluster.cuh, where its tiles lie in shared
// memory.
#pragma once

#include "product_cluster_layout.h"
#include "warpgroup_products.cuh"

namespace tessera {

// What a thread of the warpgroup that does it has of a tile of rows: 8 neighboring columns of every 16th row.
// What it needs beside the factor is loaded four rows ahead, in the place of what it has used.
template <typename P, typename Begin>
class FactorWork {
 public:
  using T = typename P::Element;
  using Layout = ProductClusterLayout;

  __device__ FactorWork(const Begin& begin, int first_row)
      : begin_(begin),
        first_row_(first_row),
        rows_(min(Layout::rows, P::m - first_row)),
        top_(static_cast<int>(threadIdx.x) % Layout::warpgroup / chunks),
        chunk_(static_cast<int>(threadIdx.x) % chunks) {
    load_columns(0);
#pragma unroll
    for (int n = 0; n < ahead; ++n) load_row(n, row_of(0, n), column_of(0));
  }

  // What is the same in all rows of a step.
  __device__ void load_columns(int step) {
    const int column = column_of(step);
    if (column < P::k) of_columns_ = begin_.of_columns(column);
  }

  // On the tile of a step, which lies there.
  __device__ void run(T* tile, int step) {
#pragma unroll 1
    for (int pass = 0; pass < passes; ++pass) {
#pragma unroll
      for (int n = 0; n < ahead; n += together) work_on(tile, step, pass, n);
    }
  }

 private:
  static constexpr int vector = Layout::vector, chunks = Layout::depth / vector;
  static constexpr int between = Layout::warpgroup / chunks;  // a thread's rows
  static constexpr int ahead = 4, together = 2;               // of them
  static constexpr int passes = Layout::rows / between / ahead;

  __device__ int row_of(int pass, int n) const {
    return top_ + (pass * ahead + n) * between;
  }
  __device__ int column_of(int step) const {
    return step * Layout::depth + chunk_ * vector;
  }
  __device__ int element(int row, int column) const {
    return (first_row_ + row) * P::k + column;
  }
  __device__ bool is_inside(int row, int column) const {
    return row < rows_ && column < P::k;
  }

  __device__ void load_row(int n, int row, int column) {
    if (is_inside(row, column)) of_results_[n] = begin_.of_results(element(row, column));
  }

  // Beyond the matrix the factor stays zero, whatever the work makes of zeros.
  __device__ void work_on(T* memory, int step, int pass, int first) {
    const SwizzledTile<T, Layout::rows, Layout::depth> tile(memory);
    const int column = column_of(step);
    const bool ends = pass + 1 == passes;  // the step
    Pack<T, vector> a[together];
#pragma unroll
    for (int n = 0; n < together; ++n) a[n] = load<vector>(tile.at(row_of(pass, first + n), chunk_));
#pragma unroll
    for (int n = 0; n < together; ++n) {
      const int row = row_of(pass, first + n);
      a[n] = begin_(element(row, column), of_columns_, of_results_[first + n], a[n]);
    }
#pragma unroll
    for (int n = 0; n < together; ++n) {
      const int row = row_of(pass, first + n);
      if (is_inside(row, column)) store<Memory::shared>(tile.at(row, chunk_), a[n]);
      load_row(first + n, row_of(ends ? 0 : pass + 1, first + n), column_of(ends ? step + 1 : step));
    }
  }

  const Begin& begin_;
  const int first_row_, rows_, top_, chunk_;
  typename Begin::OfColumns of_columns_;
  typename Begin::OfResults of_results_[ahead];
};

}  // namespace tessera
