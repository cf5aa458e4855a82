// A matrix product with any elementwise work on its first factor and after it, and sums of the latter's
// columns or rows, of compute capability 9.0: y = end(begin(a [m, k], ...) b [k, n], ...) in 16 bits with
// sums in fp32.
//
// A block stays for many tiles, and its warps do one thing each. A thread of the first starts copies; where
// there is work before the product four warps do that on a's tiles where they lie; two warpgroups multiply,
// each half of the tile's rows, and leave the product in shared memory, rounded to its type as if it went to
// memory; the others end it, row by row, while those two are at the next tile. Two blocks, whose tiles are
// one below the other, copy half of their columns of b each, to both.
//
// P: Element (T), m, n, k, transposed (b is stored as [k, n], otherwise as [n, k]), sums (how many), of_rows
// (what they add up, otherwise columns), many and begun (as in ProductClusterLayout). Each 256 columns of the
// result begin a anew.
#pragma once

#include "bulk_copies.cuh"
#include "cluster_memory.cuh"
#include "factor_work.cuh"
#include "product_cluster_layout.h"
#include "warpgroup_products.cuh"

namespace tessera {

template <typename P>
class ProductCluster {
 public:
  using T = typename P::Element;
  using Layout = ProductClusterLayout;
  static constexpr Layout layout{P::many, P::begun};
  static constexpr int warpgroup = Layout::warpgroup, halves = Layout::halves, vector = Layout::vector;
  static constexpr int half_rows = Layout::rows / halves;
  static constexpr int steps = (P::k + Layout::depth - 1) / Layout::depth;
  static constexpr int tile_columns = (P::n + Layout::columns - 1) / Layout::columns;
  static constexpr int pair_rows = Layout::blocks * Layout::rows;
  static constexpr int pairs = (P::m + pair_rows - 1) / pair_rows * tile_columns;
  static constexpr int enders = layout.enders();
  static constexpr int sets = P::sums > 0 ? P::sums : 1;
  static constexpr int in_a_row = P::of_rows ? 1 : vector;  // sums of a thread's neighboring results
  static constexpr int tiles = Layout::columns / 8;         // of a warp's sums
  static_assert(P::n % vector == 0 && (!P::begun || (P::many && P::k % vector == 0)));

  // parts: of columns [P::sums, tiles of rows, enders, n], those of each warp apart; of rows
  // [P::sums, tiles of columns, m].
  __device__ ProductCluster(const TensorMap& a, const TensorMap& b, float* parts, unsigned char* memory)
      : a_(&a),
        b_(&b),
        parts_(parts),
        thread_(static_cast<int>(threadIdx.x)),
        rank_(static_cast<int>(blockIdx.x) % Layout::blocks) {
    const uint32 beyond = shared_address(memory) % Layout::alignment;
    if (beyond != 0) memory += Layout::alignment - beyond;
    stages_ = reinterpret_cast<T*>(memory);
    result_ = stages_ + Layout::stages * Layout::stage_elements;
    barriers_ = reinterpret_cast<uint64*>(result_ + Layout::result_elements);
  }

  // Of `vector` neighboring results from an element on: end.of_columns(element) is what they need that is the
  // same in all rows, end.of_results(element) what else they need, and end(element, of_columns, of_results,
  // product, sums) ends them. Their product lies there; what is added up is added to sums [P::sums][vector],
  // or [P::sums][1] of rows.
  // begin has the same for neighboring elements of a, and begin(element, of_columns, of_results, a) is what
  // they become; what lies beyond the matrix is lost.
  template <typename Begin, typename End>
  __device__ void run(const Begin& begin, const End& end) {
    if (thread_ == 0) begin_barriers();
    wait_for_cluster();
    const int warp = thread_ / 32, group = thread_ / warpgroup;
    if (group == 1 || group == 2) {
      if constexpr (P::many) take_registers<P::begun ? 160 : 168>();
      multiply(group - 1);
    } else {
      if constexpr (P::many) give_registers<P::begun ? 96 : 88>();
      if (warp == 0) {
        if (thread_ == 0) copy();
        __syncwarp();
      } else if (P::begun && group == 3) {
        if constexpr (P::begun) begin_factor(begin);
      } else {
        finish(end, warp < warpgroup / 32 ? warp - 1 : warp - 1 - halves * warpgroup / 32);
      }
    }
    // The other block copies to this one's memory and arrives at its barriers.
    wait_for_cluster();
  }

 private:
  // A place in the ring of stages.
  struct Turn {
    int stage = 0, parity = 0;
    __device__ void advance() {
      if (++stage == Layout::stages) {
        stage = 0;
        parity ^= 1;
      }
    }
  };

  __device__ PhaseBarrier full(int stage) const { return PhaseBarrier(barriers_ + stage); }
  __device__ PhaseBarrier empty(int stage) const { return PhaseBarrier(barriers_ + Layout::stages + stage); }
  // The work before the product is done.
  __device__ PhaseBarrier begun(int stage) const {
    return PhaseBarrier(barriers_ + 2 * Layout::stages + stage);
  }
  __device__ T* a_of(int stage) const { return stages_ + stage * Layout::stage_elements; }
  __device__ T* b_of(int stage) const { return a_of(stage) + Layout::a_elements; }

  __device__ void begin_barriers() const {
    for (int stage = 0; stage < Layout::stages; ++stage) {
      full(stage).begin(1);
      empty(stage).begin(halves * Layout::blocks);
      if (P::begun) begun(stage).begin(layout.beginners());
    }
    show_barriers();
    fetch_map(a_);
    fetch_map(b_);
  }

  // For each tile of this block: its first row and column, and whether it is the last one.
  template <typename Use>
  __device__ void for_each_tile(const Use& use) const {
    const int step = static_cast<int>(gridDim.x) / Layout::blocks;
    for (int pair = static_cast<int>(blockIdx.x) / Layout::blocks; pair < pairs; pair += step) {
      use((pair / tile_columns * Layout::blocks + rank_) * Layout::rows,
          pair % tile_columns * Layout::columns, pair + step >= pairs);
    }
  }

  __device__ void copy() const {
    Turn turn;
    for_each_tile([&](int row, int column, bool) {
      for (int step = 0; step < steps; ++step, turn.advance()) {
        const PhaseBarrier ready = full(turn.stage);
        empty(turn.stage).wait(turn.parity ^ 1);
        ready.arrive_expecting(Layout::stage_elements * static_cast<int>(sizeof(T)));
        copy_tile(a_of(turn.stage), a_, ready, step * Layout::depth, row);
        copy_own_half(b_of(turn.stage), ready, step * Layout::depth, column);
      }
    });
  }

  // Of b's tile, to both blocks: rows of [n, k], or blocks of 64 columns of [k, n].
  __device__ void copy_own_half(T* b, PhaseBarrier ready, int depth, int column) const {
    constexpr int own = Layout::columns / Layout::blocks, all = (1 << Layout::blocks) - 1;
    if constexpr (P::transposed) {
#pragma unroll
      for (int first = 0; first < own; first += 64) {
        const int place = rank_ * own + first;
        copy_tile_to(all, b + place * Layout::depth, b_, ready, column + place, depth);
      }
    } else {
      copy_tile_to(all, b + rank_ * own * Layout::depth, b_, ready, depth, column + rank_ * own);
    }
  }

  template <typename Begin>
  __device__ void begin_factor(const Begin& begin) const {
    Turn turn;
    for_each_tile([&](int row, int, bool) {
      FactorWork<P, Begin> work(begin, row);
      for (int step = 0; step < steps; ++step, turn.advance()) {
        full(turn.stage).wait(turn.parity);
        work.run(a_of(turn.stage), step);
        show_to_products();
        __syncwarp();
        if (thread_ % 32 == 0) begun(turn.stage).arrive();
        work.load_columns(step + 1);
      }
    });
  }

  __device__ void multiply(int half) const {
    Turn turn;
    float sums[tiles][4];
    for_each_tile([&](int, int, bool) {
      int last = 0;
      for (int step = 0; step < steps; ++step, turn.advance()) {
        full(turn.stage).wait(turn.parity);
        if constexpr (P::begun) begun(turn.stage).wait(turn.parity);
        begin_products();
        multiply_stage(sums, a_of(turn.stage) + half * half_rows * Layout::depth, b_of(turn.stage), step > 0);
        end_of_products();
        if (step > 0) {
          wait_for_all_products_but<1>();
          release(last);
        }
        last = turn.stage;
      }
      wait_for_all_products_but<0>();
      are_ready(sums);
      release(last);
      leave(sums, half);
    });
  }

  __device__ static void multiply_stage(float (&sums)[tiles][4], T* a, T* b, bool add) {
    constexpr int columns = Layout::columns / (P::many ? 2 : 1);  // at a time
    const SwizzledTile<T, half_rows, Layout::depth> rows(a);
#pragma unroll
    for (int k = 0; k < Layout::depth; k += 16) {
#pragma unroll
      for (int first = 0; first < Layout::columns; first += columns) {
        uint64 factor;
        if constexpr (P::transposed) {
          factor = SwizzledTile<T, Layout::depth, columns>(b + first * Layout::depth).rows_from(k);
        } else {
          factor = SwizzledTile<T, columns, Layout::depth>(b + first * Layout::depth).columns_from(k);
        }
        multiply_factors<T, P::transposed, columns>(sums, first / 8, rows.columns_from(k), factor,
                                                    add || k > 0);
      }
    }
  }

  // Both blocks may write to the stage.
  __device__ void release(int stage) const {
    const int own = thread_ % warpgroup;
    if (own < Layout::blocks) empty(stage).arrive_of_block(own);
  }

  // Barriers of those who multiply a half of the rows and those who end them.
  __device__ static void wait_at(int barrier) {
    asm volatile("bar.sync %0, %1;" ::"r"(barrier), "n"(warpgroup + 32 * enders) : "memory");
  }
  __device__ static void arrive_at(int barrier) {
    __threadfence_block();
    asm volatile("bar.arrive %0, %1;" ::"r"(barrier), "n"(warpgroup + 32 * enders) : "memory");
  }
  __device__ static int left(int half) {
    return 1 + half;
  }
  __device__ static int taken(int half) {
    return 1 + halves + half;
  }

  __device__ void leave(const float (&sums)[tiles][4], int half) const {
    const int lane = thread_ % 32, warp = thread_ % warpgroup / 32;
    T* row = result_ + (half * half_rows + warp * 16 + lane % 16) * Layout::pitch + lane / 16 * 8;
    wait_at(taken(half));
#pragma unroll
    for (int tile = 0; tile < tiles; tile += 2) {
      store_tiles(row + tile * 8, narrow_pair<T>(sums[tile][0], sums[tile][1]),
                  narrow_pair<T>(sums[tile][2], sums[tile][3]),
                  narrow_pair<T>(sums[tile + 1][0], sums[tile + 1][1]),
                  narrow_pair<T>(sums[tile + 1][2], sums[tile + 1][3]));
    }
    arrive_at(left(half));
  }

  // Each warp has rows of its own, some at a time; what the next ones need is loaded while those are ended.
  template <typename End>
  __device__ void finish(const End& end, int warp) const {
    constexpr int together = P::many ? 2 : 4;
    constexpr int stride = together * enders;
    const int lane_column = thread_ % 32 * vector;
    for (int half = 0; half < halves; ++half) arrive_at(taken(half));
    for_each_tile([&](int first_row, int first_column, bool last) {
      const int column = first_column + lane_column;
      const int rows = column < P::n ? min(Layout::rows, P::m - first_row) : 0;
      const int first = first_row * P::n + column;
      float sums[sets][in_a_row] = {};
      typename End::OfColumns of_columns;
      if (column < P::n) of_columns = end.of_columns(column);
      typename End::OfResults loaded[together], next[together];
      const auto load_from = [&](typename End::OfResults(&to)[together], int row) {
#pragma unroll
        for (int n = 0; n < together; ++n) {
          const int own = row + n * enders;
          if (own < rows) to[n] = end.of_results(first + own * P::n);
        }
      };
      load_from(loaded, warp);
      int ready = 0;  // halves
      for (int row = warp; row < Layout::rows; row += stride) {
        load_from(next, row + stride);
        for (; ready < halves && row + (together - 1) * enders >= ready * half_rows; ++ready) {
          wait_at(left(ready));
        }
#pragma unroll
        for (int n = 0; n < together; ++n) {
          const int own = row + n * enders;
          if (own < rows)
            end(first + own * P::n, of_columns, loaded[n], result_ + own * Layout::pitch + lane_column, sums);
          if constexpr (P::of_rows) leave_row(sums, first_row, own, first_column / Layout::columns);
          loaded[n] = next[n];
        }
        if (!last && row < half_rows && row + stride >= half_rows) arrive_at(taken(0));
      }
      if (!last) arrive_at(taken(1));
      if constexpr (P::sums > 0 && !P::of_rows)
        leave_sums(sums, first_row / Layout::rows * enders + warp, column);
    });
  }

  // The sums of a row that the warp has ended, which begin at zero again.
  __device__ void leave_row(float (&sums)[sets][1], int first_row, int own, int tile) const {
    if (own >= Layout::rows || first_row + own >= P::m) return;
#pragma unroll
    for (int n = 0; n < P::sums; ++n) {
      float& sum = sums[n][0];
#pragma unroll
      for (int distance = 16; distance > 0; distance /= 2) sum += __shfl_xor_sync(~0u, sum, distance);
      if (thread_ % 32 == 0) parts_[(n * tile_columns + tile) * P::m + first_row + own] = sum;
      sum = 0;
    }
  }

  __device__ static void leave_sums_of(float* to, const float (&sums)[vector]) {
#pragma unroll
    for (int v = 0; v < vector; v += 4) {
      Pack<float, 4> four;
#pragma unroll
      for (int w = 0; w < 4; ++w) four.at[w] = sums[v + w];
      store<4>(to + v, four);
    }
  }
  __device__ void leave_sums(const float (&sums)[sets][vector], int part, int column) const {
    constexpr int parts = pairs / tile_columns * Layout::blocks * enders;
    if (column >= P::n) return;
#pragma unroll
    for (int n = 0; n < P::sums; ++n) leave_sums_of(parts_ + (n * parts + part) * P::n + column, sums[n]);
  }

  const TensorMap* a_;
  const TensorMap* b_;
  float* parts_;
  int thread_, rank_;
  T* stages_;         // a and b
  T* result_;         // [rows, pitch]
  uint64* barriers_;  // full, empty, begun
};

}  // namespace tessera
