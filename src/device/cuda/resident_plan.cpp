#include "device/cuda/resident_plan.h"

#include <algorithm>
#include <cmath>

#include <fmt/format.h>

#include "tessera/base/error.h"

#include "device/cuda/generated_kernel.h"

namespace tessera::cuda {
namespace {

constexpr int64_t kBlocksOfMultiprocessor = 2;
constexpr int64_t kAccessBytes = 16;
constexpr int64_t kWarp = 32;
constexpr int64_t kMostLanes = 16;        // the sums of all warps of a block stay below 10 KiB
constexpr int64_t kReservedBytes = 1024;  // of shared memory, by the driver for each block

int64_t vector_of(const ResidentProblem& problem) {
  return kAccessBytes / static_cast<int64_t>(size_of(problem.type));
}

// Numbers that a block adds up: two for each channel of a slice.
int64_t columns_of(const ResidentProblem& problem, const ResidentPlan& plan) {
  return 2 * vector_of(problem) * plan.lanes;
}

// What add_over_team of kernels/resident.cuh takes.
int64_t sums_bytes(int64_t columns) {
  const int64_t rows = std::max<int64_t>(kResidentThreads / kWarp, kResidentThreads / (columns / 4));
  return (rows + 1) * columns * static_cast<int64_t>(sizeof(float));
}

// Of all threads of a block, for one tensor.
constexpr int64_t kPackBytes = kAccessBytes * kResidentThreads;

int64_t steps_of_member(const ResidentProblem& problem, const ResidentPlan& plan) {
  const int64_t rows = int64_t{plan.members} * (kResidentThreads / plan.lanes);
  return (problem.rows + rows - 1) / rows;
}

// Fitted to what an H100 needs for the batch norms of ResNet-50.
double estimate(const ResidentProblem& problem, const ResidentPlan& plan, const GpuTraits& gpu) {
  constexpr double kBytesPerMicrosecond = 2.6e6 / 132;  // of one multiprocessor
  constexpr double kCacheBytes = 20e6;                  // of what is read again and still in the cache
  constexpr double kExchangeMicroseconds = 4;
  const double tensor = static_cast<double>(problem.rows) * plan.lanes * kAccessBytes;  // a slice of it
  const double slices = static_cast<double>(problem.channels / (vector_of(problem) * plan.lanes));
  const double rounds = std::ceil(slices / plan.teams);
  const auto steps = static_cast<double>(steps_of_member(problem, plan));
  const double rest = std::max(0.0, 1 - plan.slots / steps) * tensor * problem.tensors;
  const double again = std::max(0.0, rest * plan.teams - kCacheBytes);
  // Pieces of a row shorter than a cache line cost as much as the line.
  const bool whole_rows = slices == 1;
  const double efficiency = whole_rows || plan.lanes >= 8 ? 1 : plan.lanes >= 4 ? 0.9 : 0.5;
  const double moved = (problem.reads + problem.writes) * tensor * plan.teams + again;
  const double speed = kBytesPerMicrosecond * gpu.multiprocessors * efficiency;
  return rounds * (moved / speed + kExchangeMicroseconds / std::min(plan.teams, 2));
}

}  // namespace

std::string ResidentPlan::name() const {
  return fmt::format("{}x{}", lanes, teams);
}

std::vector<ResidentPlan> resident_plans(const ResidentProblem& problem, const GpuTraits& gpu) {
  const int64_t vector = vector_of(problem);
  require(problem.channels % vector == 0, ErrorCode::unsupported, "{} channels are not whole accesses of {}",
          problem.channels, vector);
  const int64_t most = gpu.multiprocessors * kBlocksOfMultiprocessor;
  std::vector<ResidentPlan> plans;
  for (int lanes = 1; lanes <= kMostLanes && problem.channels % (lanes * vector) == 0; lanes *= 2) {
    const int64_t slices = problem.channels / (lanes * vector);
    for (int64_t teams = 1; teams <= std::min(slices, most); ++teams) {
      if ((slices + teams - 1) / teams == (slices + teams - 2) / std::max<int64_t>(teams - 1, 1)) continue;
      ResidentPlan plan{.lanes = lanes, .teams = static_cast<int>(teams)};
      const int64_t rows = kResidentThreads / lanes;
      plan.members = static_cast<int>(std::min(most / teams, (problem.rows + rows - 1) / rows));
      const int64_t room =
          gpu.shared_bytes / kBlocksOfMultiprocessor - kReservedBytes - sums_bytes(columns_of(problem, plan));
      const int64_t packs = room / kPackBytes;
      constexpr int64_t kStepsAhead = 3;  // where what is read ahead takes room of its own
      const int64_t ahead = problem.passing > 0 ? kStepsAhead : packs;
      plan.slots = static_cast<int>((packs - (problem.passing > 0 ? ahead * problem.passing : 0)) / problem.tensors);
      plan.ahead = static_cast<int>(std::min<int64_t>(ahead, plan.slots));
      plan.microseconds = estimate(problem, plan, gpu);
      plans.push_back(plan);
    }
  }
  std::stable_sort(plans.begin(), plans.end(),
                   [](const auto& a, const auto& b) { return a.microseconds < b.microseconds; });
  return plans;
}

int64_t resident_shared_bytes(const ResidentProblem& problem, const ResidentPlan& plan) {
  return (plan.slots * problem.tensors + plan.ahead * problem.passing) * kPackBytes;
}

int64_t resident_workspace_bytes(const ResidentProblem& problem, const ResidentPlan& plan) {
  return 2 * plan.blocks() * columns_of(problem, plan) * static_cast<int64_t>(sizeof(float));
}

std::string resident_constants(const ResidentProblem& problem, const ResidentPlan& plan) {
  std::string text =
      fmt::format("  using Element = {};\n  static constexpr int64 rows = {}, channels = {};\n",
                  device_type(problem.type), problem.rows, problem.channels);
  const auto constant = [&](std::string_view name, int value) {
    text += fmt::format("  static constexpr int {} = {};\n", name, value);
  };
  constant("lanes", plan.lanes);
  constant("threads", kResidentThreads);
  constant("members", plan.members);
  constant("teams", plan.teams);
  constant("slots", plan.slots);
  constant("ahead", plan.ahead);
  return text;
}

}  // namespace tessera::cuda
