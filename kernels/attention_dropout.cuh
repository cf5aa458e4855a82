// Which of attention's weights stay, for tiles of 16 rows in the registers of a warp as the Tensor Cores have
// them. A lane draws four numbers at a time, of four neighboring keys of a query; which lane needs them is
// another matter, so that lanes exchange what has become of them: words with a bit for each of 32 keys.
//
// P: queries, keys (a multiple of 4), drops (whether any are dropped), stream, and least, the least word that
// stays.
#pragma once

#include "random.cuh"

namespace tessera {

// Of 16 queries from `query` on, by 32 keys from `key` on, which is a multiple of 32. `head` counts over the
// batch.
template <typename P>
class KeptKeysOfQueries {
 public:
  __device__ KeptKeysOfQueries(const RandomKey& random, int64 head, int query, int key, int lane) {
    if constexpr (!P::drops) return;
    const int64 row = head * P::queries + query + lane / 2;
    const int64 first = row * P::keys + key + lane % 2 * 4;
#pragma unroll
    for (int group = 0; group < 4; ++group) {
      const Words words = philox(random, P::stream, static_cast<uint64>(first + group * 8) / 4);
#pragma unroll
      for (int k = 0; k < 4; ++k) own_ |= words.at[k] >= P::least ? 1u << (8 * group + k) : 0;
    }
    own_ <<= lane % 2 * 4;
    own_ |= __shfl_xor_sync(~0u, own_, 1);
#pragma unroll
    for (int half = 0; half < 2; ++half)
      bits_[half] = __shfl_sync(~0u, own_, (lane / 4 + 8 * half) * 2) >> (lane % 4 * 2);
  }
  // As the instruction numbers the sums of a tile of 8 keys.
  __device__ bool stays(int tile, int element) const {
    return !P::drops || (bits_[element / 2] >> (8 * tile + element % 2) & 1);
  }
  // Of the query number lane / 2.
  __device__ uint32 word() const {
    return own_;
  }

 private:
  uint32 own_ = 0;
  uint32 bits_[2];
};

// What is kept of them: [batch, heads, queries, words].
template <typename P>
inline constexpr int words_of_a_query = (P::keys + 31) / 32;

}  // namespace tessera
