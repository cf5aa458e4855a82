// The innermost step of a transposition.
#pragma once

#include <cstdint>

namespace tessera::cpu {

// Edge of the squares in which a transposition works, in elements: the lines it reads and those it writes
// stay in the first-level cache.
inline constexpr int64_t kTransposeSquare = 32;

// target[j * target_stride + i] = source[i * source_stride + j] for a full square of 4-byte elements.
void transpose_square(const uint32_t* source, int64_t source_stride, uint32_t* target, int64_t target_stride);

}  // namespace tessera::cpu
