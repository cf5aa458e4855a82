// Programs whose blocks leave parts of sums that a second launch adds up, in a fixed order.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "tessera/graph/graph.h"

#include "device/cuda/codegen/generated_kernel.h"

namespace tessera::cuda {

constexpr int64_t floats(int64_t count) {
  return count * static_cast<int64_t>(sizeof(float));
}

// Appends entry `run`, which calls `function` with a `structure` of the pointers. Blocks have a
// multiprocessor each.
void add_run(GeneratedProgram& program, const PointerList& pointers, const std::string& structure,
             std::string_view function, int64_t blocks, int64_t shared_bytes, int threads,
             Beginning beginning = Beginning::wait);

// What is added up of parts [chunks, results] of floats: an output of the node.
struct Combination {
  int64_t offset = 0;  // of the parts, in the workspace
  int64_t results = 0;
  size_t output = 0;
};

// Appends entry `combine`: all of them in one launch.
void add_combine(GeneratedProgram& program, const Node& node, const std::vector<Combination>& all,
                 int64_t chunks);

}  // namespace tessera::cuda
