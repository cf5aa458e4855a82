// compare(): what a device computes beside what the reference says, in one place for all tests of kernels.
#pragma once

#include <string>
#include <vector>

#include "support/compare.h"
#include "support/mutation.h"
#include "support/tolerance.h"

namespace tessera::testing {

struct Expectation {
  std::vector<Tensor> results;
  std::vector<Tensor> exact;  // without the rounding of 16-bit results; `results` where there are none
  Tolerances tolerances;
};

// By the reference. Results in 16 bits are rounded once, at the end, as by a kernel that keeps what is between
// in fp32. With `at_each_node` as by kernels that run one after another: then each value between may have been
// rounded to the other side, by one unit of the largest, and what follows has a slope of about one.
Expectation expectation_of(const Graph& graph, const std::vector<Tensor>& inputs, Tolerances tolerances,
                           bool at_each_node = false);

struct Comparison {
  const Graph& graph;                 // without fused nodes: what is computed
  const std::vector<Tensor>& inputs;  // of the graph
  const Expectation& expectation;
  std::string context;  // stands before a failure: which case, which kernel
  std::string family;
  bool tf32 = false;  // products may be in TF32
};

// Every output within its tolerance and, in 16 bits, rounded to nearest. Returns the results of the run.
std::vector<Tensor> compare(const Comparison& comparison, const Run& run);

}  // namespace tessera::testing
