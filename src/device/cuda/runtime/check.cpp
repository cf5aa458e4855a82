#include "device/cuda/runtime/check.h"

#include "tessera/base/error.h"

namespace tessera::cuda {
namespace {

std::string advice_for(CUresult status) {
  switch (status) {
    case CUDA_ERROR_OUT_OF_MEMORY:
      return "the GPU's memory is full: choose a smaller batch, or end what else uses it";
    case CUDA_ERROR_NO_DEVICE:
      return "there is no GPU that the driver can use";
    case CUDA_ERROR_INVALID_DEVICE:
      return "there is no GPU of that number";
    case CUDA_ERROR_SYSTEM_DRIVER_MISMATCH:
    case CUDA_ERROR_COMPAT_NOT_SUPPORTED_ON_DEVICE:
    case CUDA_ERROR_UNSUPPORTED_PTX_VERSION:
    case CUDA_ERROR_NO_BINARY_FOR_GPU:
      return "the driver is too old for CUDA 13: update it";
    case CUDA_ERROR_DEVICE_UNAVAILABLE:
      return "another process holds the GPU exclusively";
    case CUDA_ERROR_ILLEGAL_ADDRESS:
    case CUDA_ERROR_LAUNCH_FAILED:
    case CUDA_ERROR_MISALIGNED_ADDRESS:
    case CUDA_ERROR_ILLEGAL_INSTRUCTION:
      return "a kernel failed and the GPU's context is lost: start the process again; compute-sanitizer "
             "finds "
             "the kernel";
    case CUDA_ERROR_ECC_UNCORRECTABLE:
    case CUDA_ERROR_HARDWARE_STACK_ERROR:
      return "the GPU reports a hardware fault: start the process again on another one";
    default:
      return "";
  }
}

}  // namespace

void check(CUresult status, const std::string& what) {
  if (status == CUDA_SUCCESS) return;
  const char* name = "unknown error";
  driver().cuGetErrorName_(status, &name);
  const char* text = "";
  driver().cuGetErrorString_(status, &text);
  const std::string advice = advice_for(status);
  fail(status == CUDA_ERROR_OUT_OF_MEMORY ? ErrorCode::out_of_memory : ErrorCode::unsupported,
       "cuda: {} failed with {} ({}){}{}", what, name, text, advice.empty() ? "" : "; ", advice);
}

void check(nvrtcResult status, const std::string& what) {
  require(status == NVRTC_SUCCESS, ErrorCode::internal, "NVRTC: {} failed: {}", what,
          nvrtc().nvrtcGetErrorString_(status));
}

void check(cublasStatus_t status, const std::string& what) {
  if (status == CUBLAS_STATUS_SUCCESS) return;
  fail(status == CUBLAS_STATUS_ALLOC_FAILED ? ErrorCode::out_of_memory : ErrorCode::unsupported,
       "cuBLASLt: {} failed: {}", what, cublaslt().cublasLtGetStatusString_(status));
}

}  // namespace tessera::cuda
