#include "device/cuda/communication/nccl_library.h"

#include <cstdlib>

#include "tessera/base/error.h"

#include "device/cuda/runtime/libraries.h"

namespace tessera::cuda {
namespace {

// What the user says in the environment holds.
void set_defaults() {
  // Collectives by the switch's multicast: a process that dies in one can leave the links of all GPUs of the
  // machine in need of a reset.
  setenv("NCCL_NVLS_ENABLE", "0", 0);
  // Recorded collectives would share their memory with other GPUs, which that of our pool cannot be.
  setenv("NCCL_GRAPH_REGISTER", "0", 0);
}

}  // namespace

const Nccl& nccl() {
  static const Nccl functions = [] {
    set_defaults();
    void* library = open_library("libnccl.so.2",
                                 "Install NCCL 2 or the wheel nvidia-nccl-cu13, or name a folder in "
                                 "TESSERA_CUDA_PATH");
    Nccl result;
#define TESSERA_RESOLVE(name) \
  result.name##_ = reinterpret_cast<decltype(result.name##_)>(find_symbol(library, #name));
    TESSERA_NCCL_FUNCTIONS(TESSERA_RESOLVE)
#undef TESSERA_RESOLVE
    return result;
  }();
  return functions;
}

int nccl_version() {
  int version = 0;
  check(nccl().ncclGetVersion_(&version), "asking for the version");
  return version;
}

std::string nccl_name() {
  const int version = nccl_version();
  return fmt::format("NCCL {}.{}.{}", version / 10000, version % 10000 / 100, version % 100);
}

std::string complaint_of(ncclResult_t status, const std::string& what) {
  if (status == ncclSuccess) return "";
  const char* detail = nccl().ncclGetLastError_(nullptr);
  return fmt::format("{} failed: {} ({})", what, nccl().ncclGetErrorString_(status),
                     detail == nullptr || *detail == '\0' ? "NCCL_DEBUG=WARN says more" : detail);
}

void check(ncclResult_t status, const std::string& what) {
  if (status != ncclSuccess) fail(ErrorCode::device_fault, "NCCL: {}", complaint_of(status, what));
}

}  // namespace tessera::cuda
