// The check that tests can fail. With TESSERA_TEST_MUTATION=KIND[,KIND...] in the environment, what a device
// computed is made wrong before it is compared, in every way of these kinds that the operators have:
//
//   zeros            one output is all zero
//   left_out_row     the last term of a sum is not added; where nothing is summed, the last row of an output
//                    is not written
//   dropped_operand  a bias, residual, scale, mask or statistic is not read
//   wrong_rounding   16-bit results are truncated; wider ones, or what enters products, are in TF32 (in bf16
//                    where TF32 is allowed, in fp32 where they are fp64)
//
// A test fails then, for each that it notices; what it does not notice becomes a property of it in
// GoogleTest's report. tests/mutation/check.py runs the tests so and lists what survived.
#pragma once

#include <functional>
#include <set>
#include <string>
#include <vector>

#include "tessera/compile/device.h"

#include "support/faults.h"

namespace tessera::testing {

enum class Mutation { zeros, left_out_row, dropped_operand, wrong_rounding };

std::string word_for(Mutation mutation);

// What the environment asks for. Throws Error(invalid_argument) on other words.
const std::set<Mutation>& mutations();

// Results for these inputs; of the device, or of a simulation of it.
using Run = std::function<std::vector<Tensor>(const std::vector<Tensor>&)>;

struct MutatedRun {
  Mutation mutation;
  std::string text;
  std::vector<Tensor> results;
};

// Results of the reference, right and with each fault that is simulated, in their order. They are the same
// for all kernels for one graph and its inputs, and take most of the time.
struct SimulatedFaults {
  std::vector<Tensor> right;
  std::vector<std::vector<Tensor>> wrong;
};

// What a mutation needs to know. `graph` has no fused nodes.
struct MutationSubject {
  const Graph& graph;
  const std::vector<Tensor>& inputs;
  const std::vector<Tensor>& honest;  // results of the device
  const std::vector<Tensor>& exact;   // of the reference, without the rounding of 16-bit results
  const Run& run;
  SimulatedFaults& simulated;  // filled as they are needed
  bool tf32 = false;
};

// All wrong results of the kinds that are asked for.
std::vector<MutatedRun> mutated_runs(const MutationSubject& subject);

// "convolution", "normalization", "fused batch_norm": what the report groups by.
std::string family_of(const Graph& graph, const std::string& fused_kind = "");

// The families of kernels that a device should have: those of all operators, and of the fusions that it
// brings in any precision. Noted down for the report, so that check.py fails where no test compares one of
// them.
std::set<std::string> record_families(const Device& device);

// Notes down for the report whether the running test noticed.
void record_mutation(Mutation mutation, const std::string& family, bool noticed, const std::string& what);

}  // namespace tessera::testing
