// Kernels that are one function over memory, for operators that are neither a cluster nor oneDNN's.
#pragma once

#include <functional>
#include <optional>
#include <string>

#include "tessera/compile/kernel.h"
#include "tessera/device/common/strided_move.h"

namespace tessera::cpu {

using backend::AxisView;
using backend::view_along;

using LoopFunction = std::function<void(const KernelArguments& arguments)>;

struct LoopKernel {
  LoopFunction run;
  int64_t workspace_bytes = 0;
  std::optional<size_t> overwrites = {};  // the input that the first output may lie over
};

// Offers "loops.KEY" for an operator. `make` is called once for each node and works out all that shapes and
// attributes decide; it takes every node that the operator's schema allows, but for elements
// narrower than a byte, which are refused before.
struct LoopRegistration {
  LoopRegistration(const std::string& key, std::function<LoopKernel(const Node& node)> make);
};

}  // namespace tessera::cpu
