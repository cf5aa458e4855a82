// A compiled graph in a form that can be kept: what compiling it again need not find out.
#pragma once

#include <map>
#include <memory>
#include <string>

#include "tessera/base/tensor.h"
#include "tessera/graph/graph.h"

namespace tessera {

// Of each node that needs one, by the node's name.
using KernelNames = std::map<std::string, std::string>;

// Compiled with these kernels (CompileOptions::kernels), on the same device and with the same precision, it
// gives the same bits.
struct PreparedGraph {
  // Of what runs every time, after the passes: what was made once of constants and frozen variables is a
  // constant of it. Of a device that only plans, what runs once is there too, and makes its results where the
  // graph is bound.
  std::unique_ptr<Graph> graph;
  KernelNames kernels;
  std::map<std::string, Tensor> constants;  // contents, by name; empty for a device that only plans
};

}  // namespace tessera
