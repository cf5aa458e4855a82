// Attention where all of a head's keys fit beside its queries, and its gradient, by the Tensor Cores: a
// head's rows are read once, 16 queries are a warp's, and their scores stay in registers. The gradient
// exchanges weights through shared memory, after which each warp has 16 keys.
//
// P, the problem, holds type, layout, batch, heads, keys, scale, causal, has_bias, has_key_lengths, and
// functions that say where operands lie: q(), k(), v(), y(), dy(), dq(), dk(), dv() and bias() (HeadPlaces).
#pragma once

#include "copies.cuh"
#include "head_places.cuh"
#include "matrix_products.cuh"
#include "pairs.cuh"
#include "reduce.cuh"
#include "short_attention_layout.h"

namespace tessera {

// What both halves read; bias and lengths of keys where there are any.
template <typename P>
struct ShortAttentionOperands {
  using T = typename P::type;
  const T* q;
  const T* k;
  const T* v;
  const T* bias;
  const int32* key_lengths;
};

template <typename P>
struct ShortAttentionPointers : ShortAttentionOperands<P> {
  typename P::type* y;
  float* log_sum;
};

template <typename P>
struct ShortAttentionGradientPointers : ShortAttentionOperands<P> {
  using T = typename P::type;
  const T* dy;
  const T* y;
  const float* log_sum;
  T* dq;
  T* dk;
  T* dv;
};

// A warp's part of a head.
template <typename P>
class ShortAttention {
 public:
  using T = typename P::type;
  static constexpr ShortAttentionLayout layout = P::layout;
  static constexpr int width = layout.width, queries = layout.queries, keys = P::keys;
  static constexpr int query_rows = layout.query_rows(), key_rows = layout.key_rows();
  static constexpr int warps = layout.warps(), heads = layout.heads();
  using Rows = Tile<T, width, true>;
  using Weights = Tile<T, key_rows, true>;
  static constexpr float log2_e = 1.4426950408889634f;
  // Of 16 rows, in tiles of 8 columns.
  using Scores = float[key_rows / 8][4];
  using Results = float[width / 8][4];

  __device__ ShortAttention()
      : warp_(static_cast<int>(threadIdx.x) / 32 % warps), lane_(static_cast<int>(threadIdx.x) % 32) {
    const int head = static_cast<int>(threadIdx.x) / (32 * warps);
    extern __shared__ uint4 memory[];
    memory_ = reinterpret_cast<T*>(memory) + head * elements;
    number_ = int64{blockIdx.x} * heads + head;
  }

  __device__ bool is_there() const { return number_ < int64{P::batch} * P::heads; }
  __device__ bool has_queries() const { return is_there() && first_row() < queries; }
  __device__ bool has_keys() const { return is_there() && first_row() < keys; }
  __device__ int first_row() const { return warp_ * 16; }
  __device__ int lane() const { return lane_; }
  // Of the head, over the batch.
  __device__ int64 number() const { return number_; }
  // Of an element of scores and results.
  __device__ int row(int element) const { return first_row() + lane_ / 4 + element / 2 * 8; }
  __device__ int column(int tile, int element) const { return tile * 8 + lane_ % 4 * 2 + element % 2; }

  __device__ Rows q() const { return Rows(memory_); }
  __device__ Rows k() const { return Rows(memory_ + query_elements); }
  __device__ Rows v() const { return Rows(memory_ + query_elements + key_elements); }
  __device__ Rows dy() const { return Rows(memory_ + query_elements + 2 * key_elements); }
  __device__ Weights weights() const { return Weights(memory_ + 2 * (query_elements + key_elements)); }
  __device__ Weights weight_gradients() const {
    return Weights(memory_ + 2 * (query_elements + key_elements) + weight_elements);
  }

  __device__ int64 place(const HeadPlaces& places) const { return place_of_head<P>(places, number_); }

  // Starts to read the head's rows, and zeros after them, by all warps of the head.
  __device__ void read(const Rows& to, const T* from, const HeadPlaces& places, int rows) const {
    const T* first = from + place(places);
    constexpr int chunks = Rows::chunks;
    const int all = (rows + 15) / 16 * 16 * chunks;
    for (int i = warp_ * 32 + lane_; i < all; i += 32 * warps) {
      const int own = i / chunks;
      copy_ahead_or_zero(to.at(own, i % chunks), first + own * places.row + i % chunks * Rows::chunk,
                         own < rows);
    }
  }

  __device__ void read_operands(const ShortAttentionOperands<P>& operands) const {
    read(q(), operands.q, P::q(), queries);
    read(k(), operands.k, P::k(), keys);
    read(v(), operands.v, P::v(), keys);
  }

  // sums = this warp's rows of a by the rows of b.
  __device__ void multiply_rows(Scores& sums, const Rows& a, const Rows& b) const {
    clear(sums);
#pragma unroll
    for (int step = 0; step < width; step += 16) {
      uint32 own[4];
      a.load_a(own, lane_, first_row(), step);
#pragma unroll
      for (int other = 0; other < key_rows; other += 16) {
        uint32 pair[4];
        b.load_b_transposed(pair, lane_, other, step);
        multiply_16x8x16<T>(sums[other / 8], own, pair[0], pair[1]);
        multiply_16x8x16<T>(sums[other / 8 + 1], own, pair[2], pair[3]);
      }
    }
  }

  // sums += 16 x 16 numbers by 16 rows from that one on.
  __device__ void add_products(Results& sums, const uint32 (&a)[4], const Rows& b, int row) const {
#pragma unroll
    for (int column = 0; column < width; column += 16) {
      uint32 pair[4];
      b.load_b(pair, lane_, row, column);
      multiply_16x8x16<T>(sums[column / 8], a, pair[0], pair[1]);
      multiply_16x8x16<T>(sums[column / 8 + 1], a, pair[2], pair[3]);
    }
  }
  // sums = weights by the rows of b.
  __device__ void multiply_weights(Results& sums, const Scores& weights, const Rows& b) const {
    clear(sums);
#pragma unroll
    for (int row = 0; row < key_rows; row += 16) {
      const uint32 own[4] = {pair(weights[row / 8], 0), pair(weights[row / 8], 2),
                             pair(weights[row / 8 + 1], 0), pair(weights[row / 8 + 1], 2)};
      add_products(sums, own, b, row);
    }
  }
  // sums = this warp's columns of the weights by the rows of b.
  __device__ void multiply_columns(Results& sums, const Weights& weights, const Rows& b) const {
    clear(sums);
#pragma unroll
    for (int row = 0; row < query_rows; row += 16) {
      uint32 own[4];
      weights.load_a_transposed(own, lane_, row, first_row());
      add_products(sums, own, b, row);
    }
  }

  // Products of queries and keys as powers of two: -inf where a key is hidden.
  __device__ void scale(Scores& scores, const ShortAttentionOperands<P>& operands) const {
    constexpr bool hides_keys = P::has_key_lengths || keys % 16 != 0;
    const int seen = seen_keys<P>(operands.key_lengths, number_);
#pragma unroll
    for (int tile = 0; tile < key_rows / 8; ++tile) {
#pragma unroll
      for (int element = 0; element < 4; ++element) {
        const int query = row(element), key = column(tile, element);
        float score = scores[tile][element] * (P::scale * log2_e);
        if constexpr (P::has_bias) {
          if (query < queries && key < keys)
            score += widen(operands.bias[place(P::bias()) + query * keys + key]) * log2_e;
        }
        const bool is_hidden = (hides_keys && key >= seen) || (P::causal && key > query);
        scores[tile][element] = is_hidden ? Extremes<float>::lowest() : score;
      }
    }
  }

  // Two neighbors of a row of numbers in registers.
  static __device__ uint32 pair(const float (&numbers)[4], int first) {
    return narrow_pair<T>(numbers[first], numbers[first + 1]);
  }
  template <int Tiles, typename Columns>
  __device__ void keep(const Columns& to, const float (&numbers)[Tiles][4]) const {
#pragma unroll
    for (int tile = 0; tile < Tiles; ++tile) {
#pragma unroll
      for (int element = 0; element < 4; element += 2)
        *reinterpret_cast<uint32*>(to.at(row(element), tile) + lane_ % 4 * 2) = pair(numbers[tile], element);
    }
  }
  // This warp's rows, by way of shared memory that no other warp reads, in whole accesses.
  __device__ void write(T* to, const HeadPlaces& places, int rows, const Rows& by,
                        const Results& results) const {
    keep(by, results);
    __syncwarp();
    T* first = to + place(places);
    constexpr int chunks = Rows::chunks;
    for (int i = lane_; i < 16 * chunks; i += 32) {
      const int own = first_row() + i / chunks;
      if (own < rows) {
        store<Memory::global>(first + own * places.row + i % chunks * Rows::chunk,
                              load<Rows::chunk>(by.at(own, i % chunks)));
      }
    }
  }

 private:
  static constexpr int elements = layout.elements(), query_elements = layout.query_elements(),
                       key_elements = layout.key_elements(), weight_elements = layout.weight_elements();

  template <int Tiles>
  static __device__ void clear(float (&numbers)[Tiles][4]) {
#pragma unroll
    for (int tile = 0; tile < Tiles; ++tile) {
#pragma unroll
      for (int element = 0; element < 4; ++element) numbers[tile][element] = 0;
    }
  }
  int warp_;
  int lane_;
  T* memory_;
  int64 number_;
};

template <typename P>
__device__ void short_attention(const ShortAttentionPointers<P>& pointers) {
  using Own = ShortAttention<P>;
  const Own own;
  if (own.is_there()) {
    own.read_operands(pointers);
  }
  end_of_copies();
  wait_for_copies(0);
  __syncthreads();
  if (!own.has_queries()) return;

  typename Own::Scores scores;
  own.multiply_rows(scores, own.q(), own.k());
  own.scale(scores, pointers);
  float factors[2];
#pragma unroll
  for (int half = 0; half < 2; ++half) {
    float largest = Extremes<float>::lowest();
#pragma unroll
    for (auto& tile : scores) largest = fmaxf(largest, fmaxf(tile[2 * half], tile[2 * half + 1]));
#pragma unroll
    for (int distance = 1; distance < 4; distance *= 2)
      largest = fmaxf(largest, __shfl_xor_sync(~0u, largest, distance));
    float sum = 0;
#pragma unroll
    for (auto& tile : scores) {
#pragma unroll
      for (int element = 2 * half; element < 2 * half + 2; ++element) {
        tile[element] = exp2f(tile[element] - largest);
        sum += tile[element];
      }
    }
    sum = sum_of_columns(sum);
    constexpr float log_2 = 0.6931471805599453f;
    if (own.lane() % 4 == 0 && own.row(2 * half) < Own::queries)
      pointers.log_sum[own.number() * Own::queries + own.row(2 * half)] = (largest + log2f(sum)) * log_2;
    factors[half] = 1 / sum;
  }

  typename Own::Results results;
  own.multiply_weights(results, scores, own.v());
#pragma unroll
  for (auto& tile : results) {
#pragma unroll
    for (int element = 0; element < 4; ++element) tile[element] *= factors[element / 2];
  }
  own.write(pointers.y, P::y(), Own::queries, own.q(), results);
}

// What the gradient reads of this warp's queries beside their rows: early, for it is used late.
template <typename P>
class ReadResults {
 public:
  using Own = ShortAttention<P>;
  using Rows = typename Own::Rows;

  __device__ ReadResults(const Own& own, const ShortAttentionGradientPointers<P>& pointers) {
#pragma unroll
    for (int half = 0; half < 2; ++half) {
      const int row = own.row(2 * half);
      if (!own.has_queries() || row >= Own::queries) continue;
      log_sums[half] = pointers.log_sum[own.number() * Own::queries + row] * Own::log2_e;
      const typename P::type* y = pointers.y + own.place(P::y()) + row * P::y().row;
#pragma unroll
      for (int n = 0; n < own_chunks; ++n) {
        if (const int chunk = own.lane() % 4 + 4 * n; chunk < Rows::chunks)
          results_[half][n] = load<Rows::chunk>(y + chunk * Rows::chunk);
      }
    }
  }

  // The sum of y dy over a query, a quarter of it by each lane.
  __device__ float product(const Own& own, int half) const {
    float sum = 0;
    const int row = own.row(2 * half);
#pragma unroll
    for (int n = 0; n < own_chunks; ++n) {
      const int chunk = own.lane() % 4 + 4 * n;
      if (row >= Own::queries || chunk >= Rows::chunks) continue;
      const auto gradient = load<Rows::chunk>(own.dy().at(row, chunk));
#pragma unroll
      for (int i = 0; i < Rows::chunk; ++i) sum += widen(results_[half][n].at[i]) * widen(gradient.at[i]);
    }
    return sum_of_columns(sum);
  }

  // Powers of two; +inf, which makes all weights zero, where there is no query.
  float log_sums[2] = {Extremes<float>::highest(), Extremes<float>::highest()};

 private:
  static constexpr int own_chunks = (Rows::chunks + 3) / 4;
  Pack<typename P::type, Rows::chunk> results_[2][own_chunks];
};

template <typename P>
__device__ void short_attention_gradient(const ShortAttentionGradientPointers<P>& pointers) {
  using Own = ShortAttention<P>;
  const Own own;
  if (own.is_there()) {
    own.read_operands(pointers);
    own.read(own.dy(), pointers.dy, P::dy(), Own::queries);
  }
  end_of_copies();
  const ReadResults<P> results(own, pointers);
  wait_for_copies(0);
  __syncthreads();

  // dq; the weights and their gradients are kept for all.
  typename Own::Results query_gradient;
  if (own.has_queries()) {
    typename Own::Scores weights, gradients;
    own.multiply_rows(weights, own.q(), own.k());
    own.scale(weights, pointers);
    own.multiply_rows(gradients, own.dy(), own.v());
#pragma unroll
    for (int half = 0; half < 2; ++half) {
      const float product = results.product(own, half);
#pragma unroll
      for (int tile = 0; tile < Own::key_rows / 8; ++tile) {
#pragma unroll
        for (int element = 2 * half; element < 2 * half + 2; ++element) {
          const float weight = exp2f(weights[tile][element] - results.log_sums[half]);
          weights[tile][element] = weight;
          gradients[tile][element] = weight * (gradients[tile][element] - product);
        }
      }
    }
    own.keep(own.weights(), weights);
    own.keep(own.weight_gradients(), gradients);
    own.multiply_weights(query_gradient, gradients, own.k());
  }
  __syncthreads();

  typename Own::Results key_gradient, value_gradient;
  if (own.has_keys()) {
    own.multiply_columns(value_gradient, own.weights(), own.dy());
    own.multiply_columns(key_gradient, own.weight_gradients(), own.q());
  }
  // What comes next lies over what other warps have read.
  __syncthreads();
  const auto scale = [](typename Own::Results& results) {
#pragma unroll
    for (auto& tile : results) {
#pragma unroll
      for (float& number : tile) number *= P::scale;
    }
  };
  if (own.has_queries()) {
    scale(query_gradient);
    own.write(pointers.dq, P::dq(), Own::queries, own.q(), query_gradient);
  }
  if (own.has_keys()) {
    scale(key_gradient);
    own.write(pointers.dk, P::dk(), Own::keys, own.k(), key_gradient);
    own.write(pointers.dv, P::dv(), Own::keys, own.v(), value_gradient);
  }
}

}  // namespace tessera
