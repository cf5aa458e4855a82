// Counter-based random numbers: Philox 4x32-10 (Salmon et al., "Parallel random numbers: as easy as 1, 2, 3",
// 2011). A number depends only on (seed, stream, index), so it is the same on every device, thread count and
// resume.
//
// The one definition, for the reference, the CPU's loops and the GPU's kernels:
//   word(index)    = philox(counter = {index / 4 (64 bits, low word first), stream (64 bits, low word
//   first)},
//                           key = seed (64 bits, low word first))[index % 4]
//   uniform(index) = (word(index) >> 8) * 2^-24
//   normal(index)  = Box-Muller of the pair of words 2j and 2j+1, j = index / 2: with
//                    r = sqrt(-2 ln((word(2j) + 1) * 2^-32)) and a = 2 pi word(2j+1) * 2^-32,
//                    r cos(a) for the even index, r sin(a) for the odd one
// so that one block of Philox makes four uniform or four normal numbers. An operator of a graph has a stream
// of 32 bits and a step of 32 bits, which step_stream() joins.
#pragma once

#include <array>
#include <cstdint>

namespace tessera {

// Four 32-bit random words for one 128-bit counter under a 64-bit key. Inline, so that loops over blocks
// vectorize.
inline std::array<uint32_t, 4> philox(std::array<uint32_t, 4> counter, std::array<uint32_t, 2> key) {
  for (int round = 0; round < 10; ++round) {
    const uint64_t a = uint64_t{0xD2511F53u} * counter[0];
    const uint64_t b = uint64_t{0xCD9E8D57u} * counter[2];
    counter = {static_cast<uint32_t>(b >> 32) ^ counter[1] ^ key[0], static_cast<uint32_t>(b),
               static_cast<uint32_t>(a >> 32) ^ counter[3] ^ key[1], static_cast<uint32_t>(a)};
    key[0] += 0x9E3779B9u;
    key[1] += 0xBB67AE85u;
  }
  return counter;
}

// The stream of an operator at a step: the low 32 bits of each.
inline uint64_t step_stream(int64_t stream, int64_t step) {
  return static_cast<uint32_t>(stream) | static_cast<uint64_t>(step) << 32;
}

// In [0, 1) with the upper `bits` of the word; at most 24 bits are exact in a float.
inline float uniform_of(uint32_t word, int bits = 24) {
  return static_cast<float>(word >> (32 - bits)) / static_cast<float>(1u << bits);
}

// Two standard normal numbers of two words.
std::array<double, 2> normals_of(uint32_t first, uint32_t second);

class Random {
 public:
  // `stream` separates independent users of one seed: a parameter, a node, an epoch.
  explicit Random(uint64_t seed, uint64_t stream = 0) : seed_(seed), stream_(stream) {}

  // Words 4*block to 4*block + 3.
  std::array<uint32_t, 4> block(uint64_t block) const {
    return philox({static_cast<uint32_t>(block), static_cast<uint32_t>(block >> 32),
                   static_cast<uint32_t>(stream_), static_cast<uint32_t>(stream_ >> 32)},
                  {static_cast<uint32_t>(seed_), static_cast<uint32_t>(seed_ >> 32)});
  }
  uint32_t word(uint64_t index) const { return block(index / 4)[index % 4]; }
  // Uniform in [0, 1) with 24 bits.
  float uniform(uint64_t index) const { return uniform_of(word(index)); }
  double normal(uint64_t index) const;
  // Numbers 4*block to 4*block + 3, with the bits of those that are drawn one by one.
  std::array<float, 4> uniforms(uint64_t block) const;
  std::array<double, 4> normals(uint64_t block) const;
  // Uniform integer in [0, bound); bound > 0. Multiply-shift; the bias is below 2^-32 * bound.
  uint64_t below(uint64_t index, uint64_t bound) const;

 private:
  uint64_t seed_;
  uint64_t stream_;
};

// A 64-bit stream number from a name (FNV-1a), stable across runs and machines.
uint64_t hash_name(const char* text, uint64_t length);

}  // namespace tessera
