// Copies to shared memory beside the work.
#pragma once

#include "types.cuh"

namespace tessera {

// Starts a copy of 16 bytes to shared memory, past the first-level cache.
__device__ inline void copy_ahead(void* to, const void* from) {
  asm volatile(
      "cp.async.cg.shared.global [%0], [%1], 16;" ::"r"(static_cast<uint32>(__cvta_generic_to_shared(to))),
      "l"(from)
      : "memory");
}
// The same, or 16 bytes of zeros: nothing is read then.
__device__ inline void copy_ahead_or_zero(void* to, const void* from, bool copied) {
  asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;" ::"r"(
                   static_cast<uint32>(__cvta_generic_to_shared(to))),
               "l"(from), "r"(copied ? 16 : 0)
               : "memory");
}
// Of 4 bytes.
__device__ inline void copy_word_ahead_or_zero(void* to, const void* from, bool copied) {
  asm volatile(
      "cp.async.ca.shared.global [%0], [%1], 4, %2;" ::"r"(static_cast<uint32>(__cvta_generic_to_shared(to))),
      "l"(from), "r"(copied ? 4 : 0)
      : "memory");
}
__device__ inline void end_of_copies() {
  asm volatile("cp.async.commit_group;" ::: "memory");
}
// Waits until at most `pending` groups of copies of this thread, rounded down, are under way.
__device__ inline void wait_for_copies(int pending) {
  if (pending >= 12) {
    asm volatile("cp.async.wait_group 12;" ::: "memory");
  } else if (pending >= 6) {
    asm volatile("cp.async.wait_group 6;" ::: "memory");
  } else if (pending >= 4) {
    asm volatile("cp.async.wait_group 4;" ::: "memory");
  } else if (pending == 3) {
    asm volatile("cp.async.wait_group 3;" ::: "memory");
  } else if (pending == 2) {
    asm volatile("cp.async.wait_group 2;" ::: "memory");
  } else if (pending == 1) {
    asm volatile("cp.async.wait_group 1;" ::: "memory");
  } else {
    asm volatile("cp.async.wait_group 0;" ::: "memory");
  }
}

}  // namespace tessera
