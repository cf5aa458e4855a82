// A library in the place of NVIDIA's driver: it describes one GPU and fails where a test wants it to. The
// environment variable STAND_IN_DRIVER holds a function's name and the status that it returns, such as
// "cuInit=803", or "version=12080", the version of CUDA that it supports.
#include <cstdlib>
#include <cstring>
#include <string>

#include <cuda.h>

namespace {

// What stands behind `name=` in the variable, or `otherwise`.
int wanted(const std::string& name, int otherwise) {
  const char* text = std::getenv("STAND_IN_DRIVER");
  const std::string prefix = name + "=";
  const bool named = text != nullptr && std::strncmp(text, prefix.c_str(), prefix.size()) == 0;
  return named ? std::atoi(text + prefix.size()) : otherwise;
}

CUresult status_of(const char* function) {
  return static_cast<CUresult>(wanted(function, CUDA_SUCCESS));
}

}  // namespace

CUresult CUDAAPI cuInit(unsigned) {
  return status_of("cuInit");
}

#ifndef STAND_IN_LACKS_THE_REST

CUresult CUDAAPI cuDriverGetVersion(int* version) {
  *version = wanted("version", 13000);
  return CUDA_SUCCESS;
}
CUresult CUDAAPI cuGetErrorName(CUresult, const char** name) {
  *name = "CUDA_ERROR_OF_STAND_IN";
  return CUDA_SUCCESS;
}
CUresult CUDAAPI cuGetErrorString(CUresult, const char** text) {
  *text = "as the test wants";
  return CUDA_SUCCESS;
}
CUresult CUDAAPI cuDeviceGetCount(int* count) {
  *count = wanted("count", 1);
  return CUDA_SUCCESS;
}
CUresult CUDAAPI cuDeviceGet(CUdevice* device, int ordinal) {
  *device = ordinal;
  return status_of("cuDeviceGet");
}
CUresult CUDAAPI cuDeviceGetName(char* name, int length, CUdevice) {
  std::strncpy(name, "Stand-in", static_cast<size_t>(length));
  return CUDA_SUCCESS;
}
CUresult CUDAAPI cuDeviceGetAttribute(int* value, CUdevice_attribute attribute, CUdevice) {
  const bool major = attribute == CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR;
  const bool minor = attribute == CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR;
  const bool virtual_memory = attribute == CU_DEVICE_ATTRIBUTE_VIRTUAL_MEMORY_MANAGEMENT_SUPPORTED;
  *value = major ? wanted("major", 9) : minor || virtual_memory ? 0 : 1 << 16;
  return CUDA_SUCCESS;
}
CUresult CUDAAPI cuDeviceTotalMem(size_t* bytes, CUdevice) {
  *bytes = size_t{1} << 36;
  return CUDA_SUCCESS;
}
CUresult CUDAAPI cuDevicePrimaryCtxRetain(CUcontext* context, CUdevice) {
  *context = nullptr;
  return status_of("cuDevicePrimaryCtxRetain");
}
CUresult CUDAAPI cuStreamCreate(CUstream* stream, unsigned) {
  *stream = nullptr;
  return status_of("cuStreamCreate");
}

// What else the program looks up: it must be there.
#define STAND_IN_TEXT(name) #name
#define STAND_IN_SYMBOL(name) STAND_IN_TEXT(name)
#define STAND_IN(name)                                                       \
  extern "C" CUresult only_succeeds_##name() __asm__(STAND_IN_SYMBOL(name)); \
  extern "C" CUresult only_succeeds_##name() {                               \
    return CUDA_SUCCESS;                                                     \
  }
STAND_IN(cuDevicePrimaryCtxRelease)
STAND_IN(cuCtxSetCurrent)
STAND_IN(cuMemGetInfo)
STAND_IN(cuMemAlloc)
STAND_IN(cuMemFree)
STAND_IN(cuMemHostAlloc)
STAND_IN(cuMemFreeHost)
STAND_IN(cuMemGetAllocationGranularity)
STAND_IN(cuMemAddressReserve)
STAND_IN(cuMemAddressFree)
STAND_IN(cuMemCreate)
STAND_IN(cuMemRelease)
STAND_IN(cuMemMap)
STAND_IN(cuMemUnmap)
STAND_IN(cuMemSetAccess)
STAND_IN(cuMemcpyHtoDAsync)
STAND_IN(cuMemcpyDtoHAsync)
STAND_IN(cuMemcpyDtoDAsync)
STAND_IN(cuMemsetD8Async)
STAND_IN(cuStreamDestroy)
STAND_IN(cuStreamSynchronize)
STAND_IN(cuStreamWaitEvent)
STAND_IN(cuStreamBeginCapture)
STAND_IN(cuStreamEndCapture)
STAND_IN(cuStreamIsCapturing)
STAND_IN(cuEventCreate)
STAND_IN(cuEventDestroy)
STAND_IN(cuEventElapsedTime)
STAND_IN(cuEventRecordWithFlags)
STAND_IN(cuEventSynchronize)
STAND_IN(cuGraphInstantiate)
STAND_IN(cuGraphLaunch)
STAND_IN(cuGraphExecDestroy)
STAND_IN(cuGraphDestroy)
STAND_IN(cuModuleLoadData)
STAND_IN(cuModuleUnload)
STAND_IN(cuModuleGetFunction)
STAND_IN(cuFuncSetAttribute)
STAND_IN(cuLaunchKernelEx)

#endif
