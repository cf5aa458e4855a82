// Workspaces of NVIDIA's libraries, which want them more aligned than the blocks of an arena are.
#pragma once

#include <cstddef>
#include <cstdint>

#include "tessera/base/rounding.h"

namespace tessera::cuda {

// What cuBLASLt documents. cuDNN says nothing, and is used to what cudaMalloc gives.
inline constexpr int64_t kWorkspaceAlignment = 256;

// How many bytes to ask for, so that so many lie behind an aligned address. None stay none.
inline int64_t booked_workspace(int64_t bytes) {
  return bytes == 0 ? 0 : bytes + kWorkspaceAlignment;
}

// The first aligned address of what was booked. Null stays null.
inline std::byte* aligned_workspace(void* booked) {
  return reinterpret_cast<std::byte*>(
      round_up(reinterpret_cast<uintptr_t>(booked), static_cast<uintptr_t>(kWorkspaceAlignment)));
}

}  // namespace tessera::cuda
