// What a device computes beside what the reference says, in one place for all tests of kernels.
#pragma once

#include <memory>
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

// By the reference. Results in 16 bits are rounded once, at the end, as by a kernel that keeps what is
// between in fp32; inputs that the graph itself casts are rounded too. With `at_each_node` as by kernels that
// run one after another: then each value between may have been rounded to the other side, by one unit of the
// largest, and what follows has a slope of about one.
Expectation expectation_of(const Graph& graph, const std::vector<Tensor>& inputs, Tolerances tolerances,
                           bool at_each_node = false);

struct Comparison {
  const Graph& graph;                 // without fused nodes: what is computed
  const std::vector<Tensor>& inputs;  // of the graph
  const Expectation& expectation;
  std::string context;  // stands before a failure: which case, which kernel
  std::string family;
  bool tf32 = false;  // products may be in TF32
  // Those of one graph and its inputs may share what their faults have in common.
  std::shared_ptr<SimulatedFaults> simulated = std::make_shared<SimulatedFaults>();
};

// Every output within its tolerance and, in 16 bits, rounded to nearest.
::testing::AssertionResult agrees(const std::vector<Tensor>& actual, const Expectation& expectation);

// Runs, and makes the results wrong in each way that the environment asks for (mutation.h): each is a failure
// of the test, or in its report what it does not notice.
void expect_noticed(const Comparison& comparison, const Run& run);

}  // namespace tessera::testing
