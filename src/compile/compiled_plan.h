// What compiling makes of a graph: all that an executable needs but for memory.
#pragma once

#include <memory>
#include <vector>

#include "tessera/compile/communicator.h"
#include "tessera/compile/executable.h"

#include "compile/lane_plan.h"
#include "compile/schedule.h"
#include "compile/step.h"
#include "compile/storage.h"

namespace tessera {

struct CompiledPlan {
  CompileOptions options;  // as the graph was compiled
  std::unique_ptr<Graph> graph;
  Schedule schedule;
  LanePlan lanes;
  std::vector<std::shared_ptr<Communicator>> groups;  // of what is on the lane
  std::vector<Step> once;
  std::vector<Step> steps;  // of every run
  StoragePlan storage;
  std::vector<NodeReport> reports;  // of what runs once, and after them of every run
  std::vector<NodeReport> replaced;
  std::vector<PassReport> passes;
  std::vector<PhaseReport> phases;

  // Of a phase that begins where the one before ended.
  void end_phase(const char* name);
};

// Throws Error(invalid_argument) where extents are open, and as passes, kernels and the planner do.
CompiledPlan compile_plan(const Graph& graph, Device& device, const CompileOptions& options);

}  // namespace tessera
