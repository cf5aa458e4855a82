// What kernels know of the caches.
#pragma once

#include <cstdint>

namespace tessera::cpu {

// Results of this size or more go past the caches: they would be gone before anything reads them.
inline constexpr int64_t kStreamBytes = int64_t{16} << 20;

// To the second-level cache.
inline void fetch(const float* memory, int64_t elements) {
  constexpr int64_t kCacheLine = 16;  // floats
  for (int64_t i = 0; i < elements; i += kCacheLine) __builtin_prefetch(memory + i, 0, /*locality=*/2);
  // GCC takes a function that only prefetches for one without effect, and removes the calls.
  asm volatile("" : : : "memory");
}

}  // namespace tessera::cpu
