// Which kernel runs a node: the device's candidates in order, their refusals, and their times when tuned.
#pragma once

#include <cstddef>
#include <memory>

#include "compile/candidates_ahead.h"

namespace tessera {

struct ChosenKernel {
  std::unique_ptr<Kernel> kernel;      // null on a device that does not execute, and beside a graph
  std::shared_ptr<const Graph> graph;  // to take the node's place; mostly none
  NodeReport report;
};

// Of `question`, which is in place `place` of those of `ahead`. Throws Error(unsupported) with every
// candidate's refusal when none takes the node, and what a candidate throws, with its name and the node's:
// that is no refusal.
ChosenKernel choose_kernel(const KernelQuestion& question, size_t place, CandidatesAhead& ahead,
                           Device& device);

}  // namespace tessera
