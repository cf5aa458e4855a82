// Attention of a few queries to many keys, as the next token of a text has: limited by how fast keys and
// values are read. The blocks of a cluster divide the keys of a head; of each, neighboring lanes read one key
// at a time, go on with sums of their own, and add them up at the end, through each other's shared memory.
//
// P: Element (T), batch, heads, queries, keys, width (of keys and values, a power of two of 16-byte accesses,
// at most 32), splits (blocks of a cluster), together (keys of a lane that are under way at a time), scale,
// has_bias, has_key_lengths, and where operands lie: q(), k(), v(), y() and bias() (HeadPlaces).
#pragma once

#include "block_sizes.h"
#include "cluster_memory.cuh"
#include "head_places.cuh"
#include "launch.cuh"
#include "pairs.cuh"
#include "primitives.cuh"
#include "reduce.cuh"

namespace tessera {

template <typename P>
struct FewQueryPointers {
  using T = typename P::Element;
  const T* q;
  const T* k;
  const T* v;
  const T* bias;             // added to scores
  const int32* key_lengths;  // [batch]: so many keys are seen, the first ones
  T* y;
  float* log_sum;  // [batch, heads, queries]; null: not wanted
};

__device__ inline void fetch_to_second_cache(const void* address) {
  asm volatile("prefetch.global.L2 [%0];" ::"l"(address));
}

template <typename P>
class FewQueryAttention {
 public:
  using T = typename P::Element;
  static constexpr int threads = kFewQueryThreads, warps = threads / 32;
  static constexpr int vector = 16 / static_cast<int>(sizeof(T));
  static constexpr int lanes = P::width / vector;  // that share a key
  static constexpr int keys_at_once = threads / lanes;
  static constexpr int own_keys = (P::keys + P::splits - 1) / P::splits;  // of a block
  static constexpr int steps = (own_keys + keys_at_once * P::together - 1) / (keys_at_once * P::together);
  // Of a query: what is added up of values, the highest score, and the sum of weights.
  static constexpr int pitch = P::width + 4;
  static_assert(lanes * vector == P::width && lanes <= 32 && (lanes & (lanes - 1)) == 0);

  __device__ explicit FewQueryAttention(const FewQueryPointers<P>& at)
      : at_(at),
        lane_(static_cast<int>(threadIdx.x) % lanes),
        first_(static_cast<int>(threadIdx.x) / lanes),
        split_(static_cast<int>(blockIdx.x) % P::splits),
        head_(static_cast<int>(blockIdx.x) / P::splits) {}

  __device__ void run() {
    __shared__ alignas(16) float parts[warps][P::queries * pitch];
    __shared__ alignas(16) float own[P::queries * pitch];
    fetch_ahead();
    wait_for_launch();
#pragma unroll
    for (int r = 0; r < P::queries; ++r) {
      widen_all(q_[r], load<vector>(at_.q + place(P::q()) + r * P::q().row + lane_ * vector));
#pragma unroll
      for (float& element : q_[r]) element *= P::scale;
      highest_[r] = Extremes<float>::lowest();
      sum_[r] = 0;
    }
    const int begin = split_ * own_keys, end = min(begin + own_keys, seen_keys<P>(at_.key_lengths, head_));
    for (int step = 0; step < steps && begin + step * keys_at_once * P::together < end; ++step)
      add_keys(begin, end, step);
    add_over_warp();
    const int warp = static_cast<int>(threadIdx.x) / 32;
    if (static_cast<int>(threadIdx.x) % 32 < lanes) keep(parts[warp]);
    __syncthreads();
    join<warps>(own, [&](int part, int element) { return load<4>(parts[part] + element); });
    if constexpr (P::splits > 1) {
      wait_for_cluster();
      finish(own);
      wait_for_cluster();  // until then others read it
    } else {
      __syncthreads();
      finish(own);
    }
  }

 private:
  __device__ int64 place(const HeadPlaces& places) const {
    return place_of_head<P>(places, head_);
  }

  // What launches before may still write is not read, but on its way.
  __device__ void fetch_ahead() const {
    constexpr int line = 128 / static_cast<int>(sizeof(T)), lines = (P::width + line - 1) / line;
    const int begin = split_ * own_keys, count = min(own_keys, P::keys - begin);
    for (int i = static_cast<int>(threadIdx.x); i < count * lines; i += threads) {
      const int64 key = begin + i / lines, element = i % lines * line;
      fetch_to_second_cache(at_.k + place(P::k()) + key * P::k().row + element);
      fetch_to_second_cache(at_.v + place(P::v()) + key * P::v().row + element);
    }
  }

  // What this lane has of a key's row.
  __device__ Pack<T, vector> part_of(const T* heads, const HeadPlaces& places, int key) const {
    return load<vector>(heads + place(places) + key * places.row + lane_ * vector);
  }

  __device__ void add_keys(int begin, int end, int step) {
    Pack<T, vector> k[P::together], v[P::together];
    float scores[P::together][P::queries];
#pragma unroll
    for (int n = 0; n < P::together; ++n) {
      const int key = key_of(begin, step, n);
      const bool there = key < end;
      k[n] = there ? part_of(at_.k, P::k(), key) : Pack<T, vector>{};
      v[n] = there ? part_of(at_.v, P::v(), key) : Pack<T, vector>{};
#pragma unroll
      for (int r = 0; r < P::queries; ++r) {
        scores[n][r] = 0;
        if constexpr (P::has_bias) {
          if (there) scores[n][r] = widen(at_.bias[place(P::bias()) + r * P::bias().row + key]);
        }
      }
    }
#pragma unroll
    for (int n = 0; n < P::together; ++n) {
      const bool there = key_of(begin, step, n) < end;
      float numbers[vector];
      widen_all(numbers, k[n]);
#pragma unroll
      for (int r = 0; r < P::queries; ++r) {
        float score = 0;
#pragma unroll
        for (int i = 0; i < vector; ++i) score += q_[r][i] * numbers[i];
#pragma unroll
        for (int distance = lanes / 2; distance > 0; distance /= 2)
          score += __shfl_xor_sync(~0u, score, distance);
        scores[n][r] = there ? scores[n][r] + score : Extremes<float>::lowest();
      }
    }
#pragma unroll
    for (int r = 0; r < P::queries; ++r) {
      float highest = highest_[r];
#pragma unroll
      for (int n = 0; n < P::together; ++n) highest = op_maximum(highest, scores[n][r]);
      rescale(r, highest);
#pragma unroll
      for (int n = 0; n < P::together; ++n) {
        scores[n][r] = weight_of(scores[n][r], highest);
        sum_[r] += scores[n][r];
      }
    }
#pragma unroll
    for (int n = 0; n < P::together; ++n) {
      float numbers[vector];
      widen_all(numbers, v[n]);
#pragma unroll
      for (int r = 0; r < P::queries; ++r) {
#pragma unroll
        for (int i = 0; i < vector; ++i) y_[r][i] += scores[n][r] * numbers[i];
      }
    }
  }

  __device__ int key_of(int begin, int step, int n) const {
    return begin + (step * P::together + n) * keys_at_once + first_;
  }

  // Where all scores are minus infinity there is nothing to take a weight's power of.
  __device__ static float weight_of(float score, float highest) {
    return highest == Extremes<float>::lowest() ? 0.0f : expf(score - highest);
  }

  __device__ void rescale(int r, float highest) {
    const float factor = weight_of(highest_[r], highest);
    sum_[r] *= factor;
#pragma unroll
    for (float& element : y_[r]) element *= factor;
    highest_[r] = highest;
  }

  // So that the first lanes have what all of them have.
  __device__ void add_over_warp() {
#pragma unroll
    for (int r = 0; r < P::queries; ++r) {
#pragma unroll
      for (int distance = lanes; distance < 32; distance *= 2) {
        const float other = __shfl_xor_sync(~0u, highest_[r], distance);
        rescale(r, op_maximum(highest_[r], other));
        sum_[r] += __shfl_xor_sync(~0u, sum_[r], distance);
#pragma unroll
        for (float& element : y_[r]) element += __shfl_xor_sync(~0u, element, distance);
      }
    }
  }

  __device__ void keep(float* part) const {
#pragma unroll
    for (int r = 0; r < P::queries; ++r) {
#pragma unroll
      for (int i = 0; i < vector; i += 4) {
        Pack<float, 4> four;
#pragma unroll
        for (int k = 0; k < 4; ++k) four.at[k] = y_[r][i + k];
        store<4>(part + r * pitch + lane_ * vector + i, four);
      }
      if (lane_ == 0) store<4>(part + r * pitch + P::width, Pack<float, 4>{{highest_[r], sum_[r], 0, 0}});
    }
  }

  // What so many parts have together; read(part, element) gives four numbers of one.
  template <int count, typename Read>
  __device__ static Pack<float, 4> joined(int query, int column, const Read& read, float& highest,
                                          float& sum) {
    Pack<float, 4> states[count], numbers[count];
#pragma unroll
    for (int part = 0; part < count; ++part) {
      states[part] = read(part, query * pitch + P::width);
      numbers[part] = read(part, query * pitch + column);
    }
    highest = Extremes<float>::lowest();
#pragma unroll
    for (const Pack<float, 4>& state : states) highest = op_maximum(highest, state.at[0]);
    Pack<float, 4> total{};
    sum = 0;
#pragma unroll
    for (int part = 0; part < count; ++part) {
      const float factor = weight_of(states[part].at[0], highest);
      sum += factor * states[part].at[1];
#pragma unroll
      for (int k = 0; k < 4; ++k) total.at[k] += factor * numbers[part].at[k];
    }
    return total;
  }

  template <int count, typename Read>
  __device__ static void join(float* to, const Read& read) {
    constexpr int fours = P::width / 4;
    for (int i = static_cast<int>(threadIdx.x); i < P::queries * fours; i += threads) {
      const int query = i / fours, column = i % fours * 4;
      float highest, sum;
      store<4>(to + query * pitch + column, joined<count>(query, column, read, highest, sum));
      if (column == 0) store<4>(to + query * pitch + P::width, Pack<float, 4>{{highest, sum, 0, 0}});
    }
  }

  // Each block of the cluster has a part of the result.
  __device__ void finish(const float* own) const {
    constexpr int fours = P::width / 4;
    for (int i = static_cast<int>(threadIdx.x) * P::splits + split_; i < P::queries * fours;
         i += threads * P::splits) {
      const int query = i / fours, column = i % fours * 4;
      float highest, sum;
      const Pack<float, 4> total = joined<P::splits>(
          query, column,
          [&](int part, int element) {
            return P::splits > 1 ? load_of_block(own + element, part) : load<4>(own + element);
          },
          highest, sum);
      float result[4];
#pragma unroll
      for (int k = 0; k < 4; ++k) result[k] = total.at[k] / sum;
      store<4>(at_.y + place(P::y()) + query * P::y().row + column, narrow_all<T>(result));
      if (at_.log_sum != nullptr && column == 0)
        at_.log_sum[static_cast<int64>(head_) * P::queries + query] = highest + logf(sum);
    }
  }

  const FewQueryPointers<P>& at_;
  int lane_, first_, split_, head_;
  float q_[P::queries][vector];
  float y_[P::queries][vector] = {};
  float highest_[P::queries];
  float sum_[P::queries];
};

template <typename P>
__device__ void few_query_attention(const FewQueryPointers<P>& at) {
  FewQueryAttention<P>(at).run();
}

}  // namespace tessera
