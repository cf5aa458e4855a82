#include "device/cuda/normalization/resident_plan.h"

#include <algorithm>
#include <bit>

#include <fmt/format.h>

#include "tessera/base/rounding.h"
#include "tessera/device/common/refusal.h"

#include "device/cuda/codegen/generated_kernel.h"
#include "kernels/resident_layout.h"

namespace tessera::cuda {
namespace {

constexpr int64_t kAccessBytes = 16;
constexpr int64_t kPackBytes = kAccessBytes * kResidentThreads;  // of all threads of a block, for one tensor
constexpr int64_t kStepsAhead = 3;  // where what is read ahead takes room of its own

int64_t vector_of(const ResidentProblem& problem) {
  return kAccessBytes / static_cast<int64_t>(size_of(problem.type));
}

// Numbers that a block adds up: two for each channel of a slice.
int64_t columns_of(const ResidentProblem& problem, int64_t lanes) {
  return 2 * vector_of(problem) * lanes;
}

int64_t sums_bytes(int64_t columns) {
  return resident_sums(kResidentThreads, columns) * static_cast<int64_t>(sizeof(float));
}

// The most lanes up to `most` that divide the channels.
int64_t lanes_of(const ResidentProblem& problem, int64_t most) {
  int64_t lanes = most;
  while (problem.channels % (lanes * vector_of(problem)) != 0) lanes /= 2;
  return lanes;
}

// Slots of one thread, and how many steps it reads ahead.
void set_slots(const ResidentProblem& problem, const GpuTraits& gpu, ResidentPlan& plan) {
  const int64_t shared_bytes =
      gpu.block_shared_bytes(kResidentBlocks) - sums_bytes(columns_of(problem, plan.lanes));
  const int64_t packs = shared_bytes / kPackBytes;
  const int64_t passing = problem.passing > 0 ? kStepsAhead * problem.passing : 0;
  plan.slots = static_cast<int>((packs - passing) / problem.kept);
  plan.ahead = problem.passing > 0 ? std::min(static_cast<int>(kStepsAhead), plan.slots) : plan.slots;
}

}  // namespace

ResidentPlan resident_plan(const ResidentProblem& problem, const GpuTraits& gpu) {
  backend::refuse_unless(problem.channels % vector_of(problem) == 0,
                         "{} channels are not whole accesses of {}", problem.channels, vector_of(problem));
  // A cache line of a row for each team where slices fit; the more that do, the more teams, which are then
  // at different places in their work and keep the memory busy for each other. Where none fits, wider pieces
  // of rows: what is gained by reading in order is more than what could be kept.
  constexpr int64_t kLineLanes = 8;
  ResidentPlan plan;
  plan.lanes = static_cast<int>(lanes_of(problem, kLineLanes));
  set_slots(problem, gpu, plan);
  const int64_t blocks = gpu.multiprocessors * int64_t{kResidentBlocks};
  const double held = static_cast<double>(blocks * plan.slots) * kPackBytes;
  const double row = static_cast<double>(problem.channels) * static_cast<double>(size_of(problem.type));
  plan.held_share = held / (static_cast<double>(problem.rows) * row);
  const double held_slices = held / static_cast<double>(problem.rows * plan.lanes * kAccessBytes);
  if (held_slices < 1) {
    plan.lanes = static_cast<int>(lanes_of(problem, 2 * kLineLanes));
    set_slots(problem, gpu, plan);
  }
  auto teams = static_cast<int64_t>(std::bit_floor(static_cast<uint64_t>(std::max(held_slices, 2.0))));
  teams = std::min(teams, problem.channels / (plan.lanes * vector_of(problem)));
  plan.teams = static_cast<int>(std::min(teams, blocks));
  plan.members = static_cast<int>(std::min(
      blocks / plan.teams, quotient_rounded_up(problem.rows, int64_t{kResidentThreads} / plan.lanes)));
  return plan;
}

int64_t resident_shared_bytes(const ResidentProblem& problem, const ResidentPlan& plan) {
  return (plan.slots * problem.kept + plan.ahead * problem.passing) * kPackBytes;
}

int64_t resident_workspace_bytes(const ResidentProblem& problem, const ResidentPlan& plan) {
  // Two sets for each block.
  return 2 * plan.blocks() * columns_of(problem, plan.lanes) * static_cast<int64_t>(sizeof(float));
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
