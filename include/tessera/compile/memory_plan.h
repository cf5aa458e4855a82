// Where every intermediate value of a scheduled graph lives: offsets into one arena.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "tessera/base/tensor.h"

namespace tessera {

// One block that must be in memory from step `first` to step `last`, both included.
struct MemoryBlock {
  std::string name;  // the value, or the value whose memory others share
  int64_t bytes = 0;
  int64_t first = 0;
  int64_t last = 0;
  int64_t offset = -1;
  std::string type = {};  // of the value: "fp16[8, 56, 56, 64]"; "" for a kernel's workspace
};

// What is computed once, of constants and frozen variables; executables over the same variables have it
// together.
struct DerivedValue {
  std::string name;
  std::string type;  // "fp16[64, 3, 3, 64]"
  int64_t bytes = 0;
  std::string packed_for = {};  // the kernel that wants it so; "" for what nodes compute
};

struct MemoryPlan {
  std::vector<MemoryBlock> blocks;
  int64_t alignment = kMemoryAlignment;  // of every block, in bytes
  int64_t peak_bytes = 0;                // the arena
  int64_t lower_bound_bytes =
      0;  // the largest sum of blocks alive at one step: no plan of this schedule needs less
  int64_t variable_bytes = 0;          // parameters and states that runs read or write, outside the arena
  int64_t settled_variable_bytes = 0;  // those that only what is computed once reads: see Executable::load()
  int64_t persistent_bytes = 0;        // of the derived values, which lie outside the arena, too
  int64_t packed_bytes = 0;            // those of them that kernels have packed
  std::vector<DerivedValue> derived = {};  // in the order in which they are made, when variables are bound

  // What runs need.
  int64_t total_bytes() const { return peak_bytes + variable_bytes + persistent_bytes; }
};

// Gives each block an offset, a multiple of the alignment, such that blocks alive at the same time do not
// overlap.
void assign_offsets(MemoryPlan& plan);

// Throws Error(internal) naming two blocks that are alive together and overlap, or a block outside the arena.
void verify(const MemoryPlan& plan);

// The bytes that blocks need at each step; steps after the last block's end are left out.
std::vector<int64_t> alive_bytes(const MemoryPlan& plan);

// The blocks of the step at which most memory is alive, largest first; for messages.
std::vector<const MemoryBlock*> peak_blocks(const MemoryPlan& plan, size_t count);

// "memory: 2.84 GiB (2.64 GiB for values between nodes, 204 MiB for parameters and states) of 80 GiB", to say
// before a run; without the end where the device's memory is not known (0).
std::string memory_summary(const MemoryPlan& plan, int64_t total_bytes);

// Throws Error(out_of_memory) with what the graph needs, why it cannot have it, its largest blocks and
// advice.
[[noreturn]] void refuse_memory(const MemoryPlan& plan, const std::string& graph, const std::string& reason);

// As refuse_memory() when the plan and its variables need more than the device has in all, or the plan alone
// more than it has free. A total of 0, and free bytes left out, are not known.
void check_fits(const MemoryPlan& plan, const std::string& graph, int64_t total_bytes,
                std::optional<int64_t> free_bytes = std::nullopt);

}  // namespace tessera
