// Counter-based random numbers: Philox 4x32-10 (Salmon et al., "Parallel random numbers: as easy as 1, 2, 3",
// 2011). A number depends only on (seed, stream, index), so it is the same on every device, thread count and
// resume.
#pragma once

#include <array>
#include <cstdint>

namespace tessera {

// Four 32-bit random words for one 128-bit counter under a 64-bit key.
std::array<uint32_t, 4> philox(std::array<uint32_t, 4> counter, std::array<uint32_t, 2> key);

class Random {
 public:
  // `stream` separates independent users of one seed: a parameter, a node, an epoch.
  explicit Random(uint64_t seed, uint64_t stream = 0) : seed_(seed), stream_(stream) {}

  // Word number `index` of this stream.
  uint32_t word(uint64_t index) const;
  // Uniform in [0, 1) with 24 bits.
  float uniform(uint64_t index) const { return static_cast<float>(word(index) >> 8) * 0x1p-24f; }
  // Standard normal by Box-Muller from words 2*index and 2*index + 1.
  double normal(uint64_t index) const;
  // Uniform integer in [0, bound); bound > 0. Multiply-shift; the bias is below 2^-32 * bound.
  uint64_t below(uint64_t index, uint64_t bound) const;

 private:
  uint64_t seed_;
  uint64_t stream_;
};

// A 64-bit stream number from a name (FNV-1a), stable across runs and machines.
uint64_t hash_name(const char* text, uint64_t length);

}  // namespace tessera
