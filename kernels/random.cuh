// Counter-based random numbers, bit for bit those of tessera/base/random.h.
#pragma once

#include "types.cuh"

namespace tessera {

struct Words {
  uint32 at[4];
};

struct WideProduct {
  uint32 low;
  uint32 high;
};
// One instruction; of 64-bit arithmetic the compiler makes several.
__device__ inline WideProduct multiply_wide(uint32 a, uint32 b) {
  WideProduct product;
  asm("{\n  .reg .b64 wide;\n  mul.wide.u32 wide, %2, %3;\n  mov.b64 {%0, %1}, wide;\n}"
      : "=r"(product.low), "=r"(product.high)
      : "r"(a), "r"(b));
  return product;
}

// Seed and step in registers.
struct RandomKey {
  uint32 seed[2] = {};
  uint32 step = 0;

  __device__ RandomKey() {}
  // counter: {seed, step} in device memory.
  __device__ explicit RandomKey(const int64* counter)
      : seed{static_cast<uint32>(counter[0]), static_cast<uint32>(static_cast<uint64>(counter[0]) >> 32)},
        step(static_cast<uint32>(counter[1])) {}
};

__device__ inline Words philox(const RandomKey& key, uint32 stream, uint64 block) {
  uint32 key0 = key.seed[0];
  uint32 key1 = key.seed[1];
  uint32 c0 = static_cast<uint32>(block);
  uint32 c1 = static_cast<uint32>(block >> 32);
  uint32 c2 = stream;
  uint32 c3 = key.step;
#pragma unroll
  for (int round = 0; round < 10; ++round) {
    const WideProduct a = multiply_wide(0xD2511F53u, c0);
    const WideProduct b = multiply_wide(0xCD9E8D57u, c2);
    c0 = b.high ^ c1 ^ key0;
    c1 = b.low;
    c2 = a.high ^ c3 ^ key1;
    c3 = a.low;
    key0 += 0x9E3779B9u;
    key1 += 0xBB67AE85u;
  }
  return {{c0, c1, c2, c3}};
}
__device__ inline Words philox(const int64* counter, uint32 stream, uint64 block) {
  return philox(RandomKey(counter), stream, block);
}

// In [0, 1) with the upper `Bits` of the word.
template <int Bits>
__device__ inline float uniform_of(uint32 word) {
  return static_cast<float>(word >> (32 - Bits)) / static_cast<float>(1u << Bits);
}

// The words of the elements index to index + V - 1.
template <int V>
__device__ inline void random_words(const int64* counter, uint32 stream, uint64 index, uint32 (&out)[V]) {
  if constexpr (V % 4 == 0) {
    for (int group = 0; group < V / 4; ++group) {
      const Words words = philox(counter, stream, index / 4 + group);
      for (int k = 0; k < 4; ++k) out[4 * group + k] = words.at[k];
    }
  } else {
    for (int k = 0; k < V; ++k) out[k] = philox(counter, stream, (index + k) / 4).at[(index + k) % 4];
  }
}

// Their uniform numbers.
template <int Bits, int V>
__device__ inline void uniform(const int64* counter, uint32 stream, uint64 index, float (&out)[V]) {
  uint32 words[V];
  random_words(counter, stream, index, words);
  for (int k = 0; k < V; ++k) out[k] = uniform_of<Bits>(words[k]);
}

// The least word whose uniform number of 24 bits is `limit`, below 1, or more: a comparison of words takes no
// conversion.
__device__ constexpr uint32 least_word(float limit) {
  const float scaled = limit * 16777216.0f;
  const auto whole = static_cast<uint32>(scaled);
  return (static_cast<float>(whole) < scaled ? whole + 1 : whole) << 8;
}

// Standard normal numbers: each thread makes the pair 2j and 2j + 1.
template <typename T>
__device__ void random_normal(const int64* counter, uint32 stream, int64 count, T* y) {
  const int64 pairs = (count + 1) / 2;
  for (int64 j = int64{blockIdx.x} * blockDim.x + threadIdx.x; j < pairs;
       j += int64{gridDim.x} * blockDim.x) {
    const Words words = philox(counter, stream, static_cast<uint64>(j) / 2);
    const uint32 first = words.at[j % 2 * 2];
    const uint32 second = words.at[j % 2 * 2 + 1];
    const double r = sqrt(-2 * log((static_cast<double>(first) + 1) * 0x1p-32));
    double sine;
    double cosine;
    sincospi(2 * (static_cast<double>(second) * 0x1p-32), &sine, &cosine);
    y[2 * j] = narrow<T>(static_cast<Lane<T>>(r * cosine));
    if (2 * j + 1 < count) y[2 * j + 1] = narrow<T>(static_cast<Lane<T>>(r * sine));
  }
}

}  // namespace tessera
