#include "device/cuda/image/nvjpeg_library.h"

#include "tessera/base/error.h"

#include "device/cuda/runtime/libraries.h"

namespace tessera::cuda {
namespace {

ErrorCode error_code(nvjpegStatus_t status) {
  switch (status) {
    case NVJPEG_STATUS_ALLOCATOR_FAILURE:
      return ErrorCode::out_of_memory;
    case NVJPEG_STATUS_ARCH_MISMATCH:
    case NVJPEG_STATUS_IMPLEMENTATION_NOT_SUPPORTED:
      return ErrorCode::unsupported;
    case NVJPEG_STATUS_INVALID_PARAMETER:
      return ErrorCode::internal;
    default:
      return ErrorCode::device_fault;
  }
}

}  // namespace

const NvJpeg& nvjpeg() {
  static const NvJpeg functions = [] {
    void* library = open_library("libnvjpeg.so.13",
                                 "Install the CUDA 13 toolkit's nvJPEG or the wheel nvidia-nvjpeg, or name a "
                                 "folder in TESSERA_CUDA_PATH");
    NvJpeg result;
#define TESSERA_RESOLVE(name) \
  result.name##_ = reinterpret_cast<decltype(result.name##_)>(find_symbol(library, #name));
    TESSERA_NVJPEG_FUNCTIONS(TESSERA_RESOLVE)
#undef TESSERA_RESOLVE
    return result;
  }();
  return functions;
}

void check(nvjpegStatus_t status, const std::string& what) {
  if (status != NVJPEG_STATUS_SUCCESS)
    fail(error_code(status), "nvJPEG: {} failed with status {}", what, static_cast<int>(status));
}

}  // namespace tessera::cuda
