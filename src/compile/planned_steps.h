// Which node runs when, and by which kernel.
#pragma once

#include <vector>

#include "compile/schedule.h"
#include "compile/step.h"
#include "compile/storage.h"
#include "compile/views.h"

namespace tessera {

struct PlannedSteps {
  Schedule schedule;
  Views views;
  std::vector<Step> once;
  std::vector<Step> every_run;
  std::vector<NodeReport> reports;   // of both, in this order
  std::vector<NodeReport> replaced;  // nodes in whose place their candidate's graph was put
  std::vector<PassReport> passes;    // each time that this was done
};

// Schedules the graph and chooses kernels. Where the candidate taken is a graph of its own
// (KernelCandidate::graph), the pass kExpandKernels puts that in the node's place, all are scheduled anew,
// and its nodes get kernels as all others do; without it the candidate's kernel of parts runs the node.
// Throws Error(unsupported) when no kernel takes a node.
PlannedSteps plan_steps(Graph& graph, Device& device, const CompileOptions& options,
                        const StorageOptions& storage);

}  // namespace tessera
