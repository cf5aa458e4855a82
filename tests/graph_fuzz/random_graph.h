// Graphs made at random from a seed.
#pragma once

#include <map>
#include <memory>
#include <string>

#include "tessera/graph/graph.h"

namespace tessera::testing {

struct RandomGraph {
  std::unique_ptr<Graph> graph;
  std::map<std::string, Tensor> values;  // of every input of the graph, parameters and states included
};

// Small shapes, operators of every class, losses, their gradients, updates; `frozen` leaves the updates out.
// The same seed gives the same graph and values. All values of the forward half are finite and moderate; the
// gradients are what they are.
RandomGraph random_graph(uint64_t seed, bool frozen = false);

enum class BlockSize {
  small,    // few pixels, which the reference can do
  large,    // as many as it takes for the kernels that GPUs have for large layers
  planned,  // of any size, without values
};

// Residual blocks with batch normalization, as in ResNets, and a training step of theirs, in channel counts
// that devices have kernels of their own for, and in others.
RandomGraph random_block(uint64_t seed, BlockSize size, bool frozen = false);

}  // namespace tessera::testing
