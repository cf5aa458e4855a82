// Problems for the kernels of a device, made at random from a seed: one node with its inputs, and how it is
// asked for. This header, check.h and seeds.h are all that a device's own test includes.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "tessera/base/tensor.h"
#include "tessera/compile/device.h"
#include "tessera/graph/graph.h"

namespace tessera::testing {

struct KernelProblem {
  std::shared_ptr<const Graph> graph;  // owns the node
  const Node* node = nullptr;          // one operator, or fused by the passes for the device
  std::vector<Tensor> inputs;          // of the node; not finite here and there in some problems
  std::vector<bool> frozen_inputs;
  bool deterministic = true;
  bool tf32 = false;
  int threads = 1;  // of OpenMP, for devices that use it

  KernelRequest request() const { return {*node, frozen_inputs, deterministic, tf32}; }
  // The node, its settings and no contents.
  std::string description() const;
};

// The problems of a seed: of half of the seeds one operator of the registry, of the others every node into
// which the passes make a small network for `device`. The same seed gives the same problems.
std::vector<KernelProblem> draw_problems(uint64_t seed, const Device& device);

// The names of the operators that draw_problems() knows how to make problems of.
std::vector<std::string> drawn_operators();

}  // namespace tessera::testing
