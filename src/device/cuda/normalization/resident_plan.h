// How work that keeps its tensor on the GPU between its two halves (kernels/resident.cuh) is divided.
#pragma once

#include <string>

#include "tessera/base/data_type.h"

#include "device/cuda/runtime/context.h"

namespace tessera::cuda {

struct ResidentProblem {
  DataType type = DataType::fp32;
  int64_t rows = 0;
  int64_t channels = 0;
  int kept = 1;     // tensors of which every element is needed in both halves
  int passing = 0;  // tensors that the first half alone reads
};

struct ResidentPlan {
  int lanes = 1;
  int members = 1;
  int teams = 1;
  int slots = 1;
  int ahead = 1;
  double held_share = 0;  // of the tensors, that all multiprocessors together hold at a time

  int64_t blocks() const { return int64_t{members} * teams; }
};

inline constexpr int kResidentThreads = 256;
inline constexpr int kResidentBlocks = 2;  // of a multiprocessor

// Throws Error(unsupported) when the channels do not fill whole accesses of 16 bytes.
ResidentPlan resident_plan(const ResidentProblem& problem, const GpuTraits& gpu);

// Shared memory of a block for what is kept and read ahead, in bytes.
int64_t resident_shared_bytes(const ResidentProblem& problem, const ResidentPlan& plan);
// Workspace for the parts of the sums, in bytes.
int64_t resident_workspace_bytes(const ResidentProblem& problem, const ResidentPlan& plan);
// The constants of the plan P, one line each.
std::string resident_constants(const ResidentProblem& problem, const ResidentPlan& plan);

}  // namespace tessera::cuda
