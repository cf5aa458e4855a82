// Launches that begin before the one before them has ended.
#pragma once

namespace tessera {

// Until all that launches before have written can be read. Of entries that begin ahead; the others begin with
// it.
__device__ inline void wait_for_launch() {
#if __CUDA_ARCH__ >= 900
  asm volatile("griddepcontrol.wait;" ::: "memory");
#endif
}

}  // namespace tessera
