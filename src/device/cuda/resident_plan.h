// How work that keeps its tensor on the GPU between its two halves (kernels/resident.cuh) is divided.
#pragma once

#include <string>
#include <vector>

#include "tessera/base/data_type.h"

#include "device/cuda/context.h"

namespace tessera::cuda {

struct ResidentProblem {
  DataType type = DataType::fp32;
  int64_t rows = 0;
  int64_t channels = 0;
  int tensors = 1;  // of which every element is needed again
  int passing = 0;  // tensors read once beside them
  int reads = 1;    // tensors read, and tensors written
  int writes = 1;
};

struct ResidentPlan {
  int lanes = 1;
  int members = 1;
  int teams = 1;
  int slots = 1;
  int ahead = 1;
  double microseconds = 0;  // estimated

  int64_t blocks() const { return int64_t{members} * teams; }
  std::string name() const;  // such as "4x2": lanes and teams
};

inline constexpr int kResidentThreads = 256;

// All divisions worth trying, the one estimated to be the fastest first. Throws Error(unsupported) when the
// channels do not fill whole accesses of 16 bytes.
std::vector<ResidentPlan> resident_plans(const ResidentProblem& problem, const GpuTraits& gpu);

// Shared memory of a block for what is kept, in bytes.
int64_t resident_shared_bytes(const ResidentProblem& problem, const ResidentPlan& plan);
// Workspace for the parts of the sums, in bytes.
int64_t resident_workspace_bytes(const ResidentProblem& problem, const ResidentPlan& plan);
// The constants of the plan P, one line each.
std::string resident_constants(const ResidentProblem& problem, const ResidentPlan& plan);

}  // namespace tessera::cuda
