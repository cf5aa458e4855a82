// A block of a head of attention, by the Tensor Cores: queries or keys are the block's own, and the others
// pass by. What block_attention.cuh and block_attention_gradient.cuh share.
//
// P, the problem, holds type, layout, batch, heads, queries, keys, scale, causal, has_bias, has_key_lengths,
// drops, and of the dropout stream, least (the least random word that stays) and factor (of what stays);
// functions that say where operands lie: q(), k(), v(), y(), dy(), dq(), dk(), dv() and bias() (HeadPlaces).
#pragma once

#include "attention_dropout.cuh"
#include "block_attention_layout.h"
#include "copies.cuh"
#include "head_places.cuh"
#include "matrix_products.cuh"
#include "pairs.cuh"
#include "reduce.cuh"

namespace tessera {

// What both halves read; bias, lengths of keys and counter where there are any.
template <typename P>
struct BlockAttentionOperands {
  using T = typename P::type;
  const T* q;
  const T* k;
  const T* v;
  const T* bias;
  const int32* key_lengths;
  const int64* counter;
};

template <typename P>
__device__ RandomKey random_key_of(const int64* counter) {
  if constexpr (P::drops) {
    return RandomKey(counter);
  } else {
    return {};
  }
}

__device__ inline float power_of_two(float x) {
  float y;
  asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(y) : "f"(x));
  return y;
}

// A block of a head and a warp's part of it. `own` rows are the block's, queries or keys, of so many
// operands; the others pass by, `step` at a time in registers.
template <typename P, bool OwnQueries, int Operands>
class AttentionBlock {
 public:
  using T = typename P::type;
  static constexpr BlockAttentionLayout layout = P::layout;
  static constexpr int width = layout.width, tiles = layout.row_tiles, step = 32;
  static constexpr int own_rows = layout.own_rows(), passing_rows = layout.passing_rows;
  static constexpr int own_count = OwnQueries ? P::queries : P::keys;
  static constexpr float log2_e = 1.4426950408889634f;
  // Of the bias; its rows are queries.
  static constexpr bool brings_bias = P::has_bias && layout.brings_bias();
  using Biases = Tile<T, OwnQueries ? passing_rows : own_rows, true>;
  using Rows = Tile<T, width, true>;
  using Operand = uint32[tiles][4];
  // Of 16 rows, in tiles of 8 columns.
  using Scores = float[tiles][step / 8][4];
  using Results = float[tiles][width / 8][4];

  __device__ explicit AttentionBlock(const int32* key_lengths)
      : warp_(static_cast<int>(threadIdx.x) / 32), lane_(static_cast<int>(threadIdx.x) % 32) {
    constexpr int blocks = OwnQueries ? layout.query_blocks() : layout.key_blocks();
    const int block = static_cast<int>(blockIdx.x) % blocks;
    // Those that have most to do come first.
    first_ = (P::causal && OwnQueries ? blocks - 1 - block : block) * own_rows;
    head_ = blockIdx.x / blocks;
    seen_keys_ = seen_keys<P>(key_lengths, head_);
  }

  __device__ int lane() const { return lane_; }
  __device__ int64 head() const { return head_; }  // over the batch
  // Of the block, and of the warp in it.
  __device__ int first() const { return first_; }
  __device__ int first_row() const { return warp_ * 16 * tiles; }
  // Of 16 rows, and of an element of them, in the head.
  __device__ int first_row_of(int tile) const { return first_ + first_row() + tile * 16; }
  __device__ int row(int tile, int element) const { return first_row_of(tile) + lane_ / 4 + element / 2 * 8; }
  __device__ static int column(int lane, int tile, int element) {
    return tile * 8 + lane % 4 * 2 + element % 2;
  }

  // Of shared memory: operands of the block, pairs that pass by, their biases, and words of queries.
  __device__ Rows own(int number) const { return Rows(memory() + number * layout.own_elements()); }
  __device__ Rows passing(int stage, int number) const {
    return Rows(memory() + own_elements + (stage * 2 + number) * layout.passing_elements());
  }
  __device__ Biases biases(int stage) const {
    return Biases(memory() + own_elements + passing_elements + stage * bias_elements);
  }
  __device__ uint32* words(int stage) const {
    T* after = memory() + own_elements + passing_elements + layout.stages * bias_elements;
    return reinterpret_cast<uint32*>(after) + stage * layout.query_words();
  }

  __device__ int64 place(const HeadPlaces& places) const { return place_of_head<P>(places, head_); }

  // Starts to read rows of the head from `first` on, and zeros after the last.
  template <int Count>
  __device__ void read(const Rows& to, const T* from, const HeadPlaces& places, int first, int rows) const {
    const T* begin = from + place(places);
    constexpr int chunks = Rows::chunks;
#pragma unroll
    for (int i = static_cast<int>(threadIdx.x); i < Count * chunks; i += layout.threads) {
      const int own = i / chunks, row = first + own;
      copy_ahead_or_zero(to.at(own, i % chunks),
                         begin + (row < rows ? row : 0) * places.row + i % chunks * Rows::chunk, row < rows);
    }
  }

  // The same of the biases.
  __device__ void read_biases(int stage, const T* bias, int passing) const {
    if constexpr (brings_bias) {
      const Biases to = biases(stage);
      const T* begin = bias + place(P::bias());
      constexpr int chunks = Biases::chunks, rows = OwnQueries ? own_rows : passing_rows;
      const int first_query = OwnQueries ? first_ : passing, first_key = OwnQueries ? passing : first_;
#pragma unroll
      for (int i = static_cast<int>(threadIdx.x); i < rows * chunks; i += layout.threads) {
        const int query = first_query + i / chunks, key = first_key + i % chunks * Biases::chunk;
        const bool is_there = query < P::queries && key < P::keys;
        copy_ahead_or_zero(to.at(i / chunks, i % chunks),
                           begin + (is_there ? static_cast<int64>(query) * P::keys + key : 0), is_there);
      }
    }
  }

  // The passing rows from which on, and up to which, any is seen: no query sees a block of hidden keys.
  __device__ int begin() const {
    return P::causal && !OwnQueries ? first_ / passing_rows * passing_rows : 0;
  }
  __device__ int end() const {
    if constexpr (OwnQueries) {
      return P::causal ? min(seen_keys_, first_ + own_rows) : seen_keys_;
    } else {
      return P::has_key_lengths && first_ >= seen_keys_ ? 0 : P::queries;
    }
  }

  // sums = the warp's rows of a by `step` rows of b.
  __device__ void multiply_rows(Scores& sums, const Rows& a, const Rows& b, int row) const {
    clear(sums);
#pragma unroll
    for (int column = 0; column < width; column += 16) {
      Operand own;
#pragma unroll
      for (int tile = 0; tile < tiles; ++tile) a.load_a(own[tile], lane_, first_row() + tile * 16, column);
#pragma unroll
      for (int other = 0; other < step; other += 16) {
        uint32 pair[4];
        b.load_b_transposed(pair, lane_, row + other, column);
#pragma unroll
        for (int tile = 0; tile < tiles; ++tile) {
          multiply_16x8x16<T>(sums[tile][other / 8], own[tile], pair[0], pair[1]);
          multiply_16x8x16<T>(sums[tile][other / 8 + 1], own[tile], pair[2], pair[3]);
        }
      }
    }
  }

  // sums += weights by `step` rows of b.
  __device__ void add_weighted(Results& sums, const Scores& weights, const Rows& b, int row) const {
#pragma unroll
    for (int other = 0; other < step; other += 16) {
      Operand own;
#pragma unroll
      for (int tile = 0; tile < tiles; ++tile) {
#pragma unroll
        for (int n = 0; n < 4; ++n)
          own[tile][n] = narrow_pair<T>(weights[tile][other / 8 + n / 2][n % 2 * 2],
                                        weights[tile][other / 8 + n / 2][n % 2 * 2 + 1]);
      }
#pragma unroll
      for (int column = 0; column < width; column += 16) {
        uint32 pair[4];
        b.load_b(pair, lane_, row + other, column);
#pragma unroll
        for (int tile = 0; tile < tiles; ++tile) {
          multiply_16x8x16<T>(sums[tile][column / 8], own[tile], pair[0], pair[1]);
          multiply_16x8x16<T>(sums[tile][column / 8 + 1], own[tile], pair[2], pair[3]);
        }
      }
    }
  }

  // Products of queries and keys as powers of two: -inf where a key is hidden. The first of the passing rows,
  // `part` of those that came together.
  __device__ void scale(Scores& scores, const T* bias, int stage, int passing, int part) const {
    // Most steps hide nothing.
    const int first_own = first_ + first_row();
    const int first_query = OwnQueries ? first_own : passing;
    const int last_key = (OwnQueries ? passing + step : first_own + 16 * tiles) - 1;
    const bool is_whole = last_key < seen_keys_ && !(P::causal && last_key > first_query);
#pragma unroll
    for (int tile = 0; tile < tiles; ++tile) {
#pragma unroll
      for (int other = 0; other < step / 8; ++other) {
        float biases[4];
        if constexpr (brings_bias) read_brought(biases, stage, tile, part + column(lane_, other, 0));
#pragma unroll
        for (int element = 0; element < 4; ++element) {
          float& score = scores[tile][other][element];
          score *= P::scale * log2_e;
          const int own = row(tile, element), passed = passing + column(lane_, other, element);
          const int query = OwnQueries ? own : passed, key = OwnQueries ? passed : own;
          if constexpr (brings_bias) {
            score += biases[element] * log2_e;
          } else if constexpr (P::has_bias) {
            if (query < P::queries && key < P::keys)
              score += widen(bias[place(P::bias()) + static_cast<int64>(query) * P::keys + key]) * log2_e;
          }
          if (!is_whole && (key >= seen_keys_ || (P::causal && key > query)))
            score = Extremes<float>::lowest();
        }
      }
    }
  }

  // The warp's rows, by way of shared memory that no other warp reads, in whole accesses.
  __device__ void write(T* to, const HeadPlaces& places, const Rows& by, const Results& results) const {
#pragma unroll
    for (int tile = 0; tile < tiles; ++tile) {
#pragma unroll
      for (int column = 0; column < width / 8; ++column) {
#pragma unroll
        for (int element = 0; element < 4; element += 2) {
          const float(&own)[4] = results[tile][column];
          *reinterpret_cast<uint32*>(by.at(row(tile, element) - first_, column) + lane_ % 4 * 2) =
              narrow_pair<T>(own[element], own[element + 1]);
        }
      }
    }
    __syncwarp();
    T* begin = to + place(places);
    constexpr int chunks = Rows::chunks;
#pragma unroll
    for (int i = lane_; i < 16 * tiles * chunks; i += 32) {
      const int own = first_row() + i / chunks;
      if (first_ + own >= own_count) continue;
      store<Memory::global>(begin + (first_ + own) * places.row + i % chunks * Rows::chunk,
                            tessera::load<Rows::chunk>(by.at(own, i % chunks)));
    }
  }

  template <int Tiles, int Columns>
  static __device__ void clear(float (&numbers)[Tiles][Columns][4]) {
#pragma unroll
    for (auto& tile : numbers) {
#pragma unroll
      for (auto& column : tile) {
#pragma unroll
        for (float& number : column) number = 0;
      }
    }
  }

 private:
  static constexpr int own_elements = Operands * layout.own_elements();
  static constexpr int passing_elements = layout.stages * 2 * layout.passing_elements();
  static constexpr int bias_elements = brings_bias ? layout.bias_elements(OwnQueries) : 0;

  // Of a tile's four elements, of which the first is of that passing row.
  __device__ void read_brought(float (&to)[4], int stage, int tile, int passed) const {
    const Biases brought = biases(stage);
    const int own = row(tile, 0) - first_;
    if constexpr (OwnQueries) {
      const int chunk = passed / Biases::chunk, place = passed % Biases::chunk;
#pragma unroll
      for (int half = 0; half < 2; ++half) {
        float pair[2];
        widen_pair<T>(pair, *reinterpret_cast<const uint32*>(brought.at(own + 8 * half, chunk) + place));
        to[2 * half] = pair[0];
        to[2 * half + 1] = pair[1];
      }
    } else {
#pragma unroll
      for (int element = 0; element < 4; ++element) {
        const int key = own + element / 2 * 8;
        to[element] = widen(brought.at(passed + element % 2, key / Biases::chunk)[key % Biases::chunk]);
      }
    }
  }

  static __device__ T* memory() {
    extern __shared__ uint4 memory[];
    return reinterpret_cast<T*>(memory);
  }

  int warp_;
  int lane_;
  int first_;
  int64 head_;
  int seen_keys_;
};

// Goes over the pairs of operands that pass by: read(stage, first) starts to read those from a row on,
// work(stage, first) works with them.
template <typename Block, typename Read, typename Work>
__device__ void go_over_passing(const Block& block, const Read& read, const Work& work) {
  const int begin = block.begin(), end = block.end();
  int stage = 0;
  if (begin < end) read(stage, begin);
  end_of_copies();
  for (int first = begin; first < end; first += Block::passing_rows, stage ^= 1) {
    if (const int next = first + Block::passing_rows; next < end) read(stage ^ 1, next);
    end_of_copies();
    wait_for_copies(1);
    __syncthreads();
    work(stage, first);
    __syncthreads();  // until then it is read what comes over it
  }
  // Where nothing is seen, the block's own may still be on their way.
  wait_for_copies(0);
  __syncthreads();
}

}  // namespace tessera
