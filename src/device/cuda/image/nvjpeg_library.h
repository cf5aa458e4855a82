// NVIDIA's decoder of JPEG files, found at run time.
#pragma once

#include <string>

#include <nvjpeg.h>

namespace tessera::cuda {

#define TESSERA_NVJPEG_FUNCTIONS(X) \
  X(nvjpegCreateEx)                 \
  X(nvjpegJpegStateCreate)          \
  X(nvjpegJpegStateDestroy)         \
  X(nvjpegJpegStreamCreate)         \
  X(nvjpegJpegStreamDestroy)        \
  X(nvjpegJpegStreamParse)          \
  X(nvjpegDecodeBatchedSupported)   \
  X(nvjpegDecodeBatchedInitialize)  \
  X(nvjpegDecodeBatched)

#define TESSERA_NVJPEG_MEMBER(name) decltype(&::name) name##_ = nullptr;
struct NvJpeg {
  TESSERA_NVJPEG_FUNCTIONS(TESSERA_NVJPEG_MEMBER)
};
#undef TESSERA_NVJPEG_MEMBER

// Loads the library at the first call. Throws Error(unsupported) that lists the files that were tried.
const NvJpeg& nvjpeg();

// Throws Error(out_of_memory), Error(unsupported) or Error(device_fault) saying what failed.
void check(nvjpegStatus_t status, const std::string& what);

}  // namespace tessera::cuda
