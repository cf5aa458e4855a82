// NVIDIA's libraries, found at run time: the driver, NVRTC, cuBLASLt and cuDNN.
#pragma once

#include <string>
#include <vector>

#include <cublasLt.h>
#include <cuda.h>
#include <nvrtc.h>

namespace tessera::cuda {

// Function by function, under the names of the headers; each macro expands to the symbol of the version that
// the header declares (cuMemAlloc_v2 for cuMemAlloc).
#define TESSERA_DRIVER_FUNCTIONS(X) \
  X(cuInit)                         \
  X(cuDriverGetVersion)             \
  X(cuGetErrorName)                 \
  X(cuGetErrorString)               \
  X(cuDeviceGet)                    \
  X(cuDeviceGetCount)               \
  X(cuDeviceGetName)                \
  X(cuDeviceGetAttribute)           \
  X(cuDeviceTotalMem)               \
  X(cuDeviceGetUuid)                \
  X(cuDevicePrimaryCtxRetain)       \
  X(cuDevicePrimaryCtxRelease)      \
  X(cuCtxSetCurrent)                \
  X(cuCtxGetStreamPriorityRange)    \
  X(cuMemGetInfo)                   \
  X(cuMemAlloc)                     \
  X(cuMemFree)                      \
  X(cuMemHostAlloc)                 \
  X(cuMemFreeHost)                  \
  X(cuMemGetAllocationGranularity)  \
  X(cuMemAddressReserve)            \
  X(cuMemAddressFree)               \
  X(cuMemCreate)                    \
  X(cuMemRelease)                   \
  X(cuMemMap)                       \
  X(cuMemUnmap)                     \
  X(cuMemSetAccess)                 \
  X(cuMemcpyHtoDAsync)              \
  X(cuMemcpyDtoHAsync)              \
  X(cuMemcpyDtoDAsync)              \
  X(cuMemsetD8Async)                \
  X(cuMemsetD32Async)               \
  X(cuStreamCreate)                 \
  X(cuStreamCreateWithPriority)     \
  X(cuStreamDestroy)                \
  X(cuStreamSynchronize)            \
  X(cuStreamWaitEvent)              \
  X(cuStreamBeginCapture)           \
  X(cuStreamEndCapture)             \
  X(cuStreamIsCapturing)            \
  X(cuEventCreate)                  \
  X(cuEventDestroy)                 \
  X(cuEventElapsedTime)             \
  X(cuEventRecordWithFlags)         \
  X(cuEventSynchronize)             \
  X(cuGraphInstantiate)             \
  X(cuGraphLaunch)                  \
  X(cuGraphExecDestroy)             \
  X(cuGraphDestroy)                 \
  X(cuModuleLoadData)               \
  X(cuModuleUnload)                 \
  X(cuModuleGetFunction)            \
  X(cuFuncSetAttribute)             \
  X(cuTensorMapEncodeTiled)         \
  X(cuLaunchKernelEx)

#define TESSERA_NVRTC_FUNCTIONS(X) \
  X(nvrtcVersion)                  \
  X(nvrtcGetErrorString)           \
  X(nvrtcCreateProgram)            \
  X(nvrtcDestroyProgram)           \
  X(nvrtcCompileProgram)           \
  X(nvrtcGetProgramLogSize)        \
  X(nvrtcGetProgramLog)            \
  X(nvrtcGetCUBINSize)             \
  X(nvrtcGetCUBIN)

#define TESSERA_CUBLASLT_FUNCTIONS(X)     \
  X(cublasLtGetVersion)                   \
  X(cublasLtCreate)                       \
  X(cublasLtDestroy)                      \
  X(cublasLtGetStatusString)              \
  X(cublasLtMatmul)                       \
  X(cublasLtMatmulDescCreate)             \
  X(cublasLtMatmulDescDestroy)            \
  X(cublasLtMatmulDescSetAttribute)       \
  X(cublasLtMatrixLayoutCreate)           \
  X(cublasLtMatrixLayoutDestroy)          \
  X(cublasLtMatrixLayoutSetAttribute)     \
  X(cublasLtMatmulPreferenceCreate)       \
  X(cublasLtMatmulPreferenceDestroy)      \
  X(cublasLtMatmulPreferenceSetAttribute) \
  X(cublasLtMatmulAlgoGetHeuristic)

#define TESSERA_MEMBER(name) decltype(&::name) name##_ = nullptr;
struct Driver {
  TESSERA_DRIVER_FUNCTIONS(TESSERA_MEMBER)
};
struct Nvrtc {
  TESSERA_NVRTC_FUNCTIONS(TESSERA_MEMBER)
};
struct CublasLt {
  TESSERA_CUBLASLT_FUNCTIONS(TESSERA_MEMBER)
};
#undef TESSERA_MEMBER

// Each loads its library at the first call. Throws Error(unsupported) that lists the files that were tried.
const Driver& driver();
const Nvrtc& nvrtc();
const CublasLt& cublaslt();
void* cudnn_library();  // a handle for dlsym

// Another one, which stays loaded for the life of the process: modules and plans hold code of it. Throws
// Error(unsupported) with the advice and the files that were tried.
void* open_library(const std::string& file, const std::string& advice);
// Throws Error(unsupported) naming the symbol that the library lacks.
void* find_symbol(void* library, const char* symbol);

// Folders that are searched, in this order: $TESSERA_CUDA_PATH, the loader's own, the toolkit's, Python's
// `nvidia` packages.
std::vector<std::string> library_folders();

}  // namespace tessera::cuda
