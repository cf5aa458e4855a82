#include "device/cuda/runtime/check.h"

#include "tessera/base/error.h"

#include "device/cuda/runtime/status.h"

namespace tessera::cuda {

void check(CUresult status, const std::string& what) {
  if (status == CUDA_SUCCESS) return;
  const char* name = "unknown error";
  driver().cuGetErrorName_(status, &name);
  const char* text = "";
  driver().cuGetErrorString_(status, &text);
  const std::string_view advice = advice_for(status);
  fail(error_code(status), "cuda: {} failed with {} ({}){}{}", what, name, text, advice.empty() ? "" : "; ",
       advice);
}

void check(nvrtcResult status, const std::string& what) {
  if (status == NVRTC_SUCCESS) return;
  fail(error_code(status), "NVRTC: {} failed: {}", what, nvrtc().nvrtcGetErrorString_(status));
}

void check(cublasStatus_t status, const std::string& what) {
  if (status == CUBLAS_STATUS_SUCCESS) return;
  fail(error_code(status), "cuBLASLt: {} failed: {}", what, cublaslt().cublasLtGetStatusString_(status));
}

}  // namespace tessera::cuda
