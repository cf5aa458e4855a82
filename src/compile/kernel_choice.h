// Which kernel runs a node: the device's candidates in order, their refusals, and their times when tuned.
#pragma once

#include <memory>
#include <vector>

#include "tessera/compile/executable.h"

#include "compile/tuner.h"

namespace tessera {

struct ChosenKernel {
  std::unique_ptr<Kernel> kernel;  // null on a device that does not execute
  NodeReport report;
};

// Throws Error(unsupported) with every candidate's refusal when none takes the node, and what a candidate
// throws, with its name and the node's: that is no refusal. `tuner` may be null.
ChosenKernel choose_kernel(const KernelRequest& request, Device& device, Tuner* tuner);

}  // namespace tessera
