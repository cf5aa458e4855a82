// NVIDIA's library of collectives, found at run time.
#pragma once

#include <string>

#include <nccl.h>

namespace tessera::cuda {

#define TESSERA_NCCL_FUNCTIONS(X) \
  X(ncclGetVersion)               \
  X(ncclGetErrorString)           \
  X(ncclGetLastError)             \
  X(ncclGetUniqueId)              \
  X(ncclCommInitRankConfig)       \
  X(ncclCommGetAsyncError)        \
  X(ncclCommAbort)                \
  X(ncclCommDestroy)              \
  X(ncclGroupStart)               \
  X(ncclGroupEnd)                 \
  X(ncclAllReduce)                \
  X(ncclReduceScatter)            \
  X(ncclAllGather)                \
  X(ncclBroadcast)                \
  X(ncclReduce)

#define TESSERA_NCCL_MEMBER(name) decltype(&::name) name##_ = nullptr;
struct Nccl {
  TESSERA_NCCL_FUNCTIONS(TESSERA_NCCL_MEMBER)
};
#undef TESSERA_NCCL_MEMBER

// Loads the library at the first call. Throws Error(unsupported) that lists the files that were tried.
const Nccl& nccl();
int nccl_version();       // 22809 of 2.28.9
std::string nccl_name();  // "NCCL 2.28.9"

// "the all-reduce failed: unhandled cuda error (...)"; "" for success.
std::string complaint_of(ncclResult_t status, const std::string& what);
// Throws Error(device_fault) saying what failed.
void check(ncclResult_t status, const std::string& what);

}  // namespace tessera::cuda
