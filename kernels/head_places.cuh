// Where the heads of attention lie, and how many of their keys count.
#pragma once

#include "types.cuh"

namespace tessera {

// Of [batch, heads, rows, width], in elements; what is in a row lies side by side.
struct HeadPlaces {
  int64 offset;            // of the first
  int64 batch, head, row;  // from one to the next
  int sharing;             // so many neighboring heads of queries have one head here
};

// The first element of what a head of queries, counted over the batch, has. P: heads.
template <typename P, typename Head>
__device__ int64 place_of_head(const HeadPlaces& places, Head head) {
  return places.offset + head / P::heads * places.batch + head % P::heads / places.sharing * places.head;
}

// How many keys the queries of a head see, the first ones; `head` counts over the batch. P: batch, heads,
// keys, has_key_lengths.
template <typename P>
__device__ int seen_keys(const int32* key_lengths, int64 head) {
  if constexpr (P::has_key_lengths) {
    return min(key_lengths[head / P::heads], int{P::keys});
  } else {
    return P::keys;
  }
}

}  // namespace tessera
