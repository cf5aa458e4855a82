// A library in the place of NVIDIA's driver: it describes one GPU and fails where a test wants it to. The
// environment variable STAND_IN_DRIVER holds a function's name and the status that it returns, such as
// "cuInit=803", or "version=12080", the version of CUDA that it supports.
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <string>
#include <string_view>

#include "device/cuda/runtime/libraries.h"

namespace {

// What stands after `name=` in the variable, or `otherwise`.
int wanted(std::string_view name, int otherwise) {
  const char* text = std::getenv("STAND_IN_DRIVER");
  const std::string prefix = std::string(name) + "=";
  const bool named = text != nullptr && std::string_view(text).starts_with(prefix);
  return named ? std::atoi(text + prefix.size()) : otherwise;
}

int attribute_of_the_gpu(uint64_t attribute) {
  switch (static_cast<CUdevice_attribute>(attribute)) {
    case CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR:
      return wanted("major", 9);
    case CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR:
    case CU_DEVICE_ATTRIBUTE_VIRTUAL_MEMORY_MANAGEMENT_SUPPORTED:
      return 0;
    default:
      return 1 << 16;
  }
}

template <typename T>
void write(uint64_t pointer, const T& value) {
  std::memcpy(reinterpret_cast<void*>(pointer), &value, sizeof(value));
}

// What the function of this name does with its first arguments, all of which are pointers or integers.
[[maybe_unused]] CUresult answer(std::string_view name, uint64_t first, uint64_t second) {
  if (name == "cuDriverGetVersion") write(first, wanted("version", 13000));
  if (name == "cuGetErrorName") write<const char*>(second, "CUDA_ERROR_OF_STAND_IN");
  if (name == "cuGetErrorString") write<const char*>(second, "as the test wants");
  if (name == "cuDeviceGetCount") write(first, wanted("count", 1));
  if (name == "cuDeviceGet") write(first, CUdevice{0});
  if (name == "cuDeviceGetName") std::strcpy(reinterpret_cast<char*>(first), "Stand-in");
  if (name == "cuDeviceGetAttribute") write(first, attribute_of_the_gpu(second & 0xffffffff));
  if (name == "cuDeviceTotalMem") write(first, size_t{1} << 36);
  if (name == "cuDevicePrimaryCtxRetain") write(first, CUcontext{});
  if (name == "cuStreamCreate") write(first, CUstream{});
  return static_cast<CUresult>(wanted(name, CUDA_SUCCESS));
}

}  // namespace

// cuda.h declares these symbols with arguments of their own types, so that other functions carry them.
#define STAND_IN_TEXT(name) #name
#define STAND_IN_SYMBOL(name) STAND_IN_TEXT(name)
#define STAND_IN(name)                                                                                 \
  extern "C" CUresult stand_in_##name(uint64_t first, uint64_t second) __asm__(STAND_IN_SYMBOL(name)); \
  extern "C" CUresult stand_in_##name(uint64_t first, uint64_t second) {                               \
    return answer(#name, first, second);                                                               \
  }

#ifdef STAND_IN_LACKS_THE_REST
STAND_IN(cuInit)
#else
TESSERA_DRIVER_FUNCTIONS(STAND_IN)
#endif
