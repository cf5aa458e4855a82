// Which memory each value of a scheduled graph uses: views, in-place results, and the arena.
#pragma once

#include <memory>
#include <set>
#include <string>
#include <unordered_map>
#include <vector>

#include "tessera/compile/device.h"
#include "tessera/compile/kernel.h"
#include "tessera/compile/memory_plan.h"
#include "tessera/compile/workspace.h"

#include "compile/lane_plan.h"
#include "compile/schedule.h"
#include "compile/views.h"

namespace tessera {

enum class StorageKind { input, variable, persistent, arena };

struct Placement {
  StorageKind kind = StorageKind::arena;
  size_t index = 0;  // of the graph's input, of the persistent value, or of the plan's block
  std::string variable;
  int64_t offset = 0;  // in bytes, of the value in that memory
};

struct StoragePlan {
  std::unordered_map<const Value*, Placement> placements;
  std::vector<const Value*> persistent;     // computed once, when the variables are bound
  std::set<size_t> passing;                 // of these, that only what is computed once reads
  std::set<std::string> settled_variables;  // that only what is computed once reads
  std::vector<size_t> workspace_blocks;     // per step of every_run: the block, or kNone
  MemoryPlan memory;
  std::vector<size_t> copied_updates;  // updates to copy at the end of the run
  static constexpr size_t kNone = static_cast<size_t>(-1);
};

// kernels: one per node of schedule.every_run, null for nodes that need none or on a device that does not
// execute. What is on a lane keeps its memory until it has been waited for.
StoragePlan plan_storage(const Graph& graph, const Schedule& schedule, const Views& views,
                         const LanePlan& lanes, const std::vector<Kernel*>& kernels,
                         const StorageOptions& options);

// Throws Error(out_of_memory) where all values of the graph together take more than 64 PiB: sums of their
// bytes, which passes, schedule and plan make, fit into 64 bits else.
void check_total_bytes(const Graph& graph);

// Sees to it that the workspace has memory for the plan's blocks. Throws Error(out_of_memory) as
// refuse_memory(), also where what is computed once would not fit beside them.
void reserve_arena(const MemoryPlan& plan, const std::string& graph, Workspace& workspace);

}  // namespace tessera
