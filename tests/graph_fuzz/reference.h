// What a graph computes, and how far rounding may carry from that.
#pragma once

#include <functional>
#include <map>
#include <string>
#include <vector>

#include "tessera/graph/operator.h"
#include "tessera/passes/pass.h"

namespace tessera::testing {

// Outputs and, named "next NAME", the new values of what is updated.
using Results = std::map<std::string, Tensor>;

// Moves the result of each node by as much as a kernel's rounding may: about a unit of its type, and in TF32
// of what contractions read and make, too. Seed 0: not at all.
struct Shake {
  uint64_t seed = 0;
  bool tf32 = false;
  double fp32_error = 4e-7;  // relative: some units, for what a kernel adds up in another order
};

// The reference loops, node by node, also of what fused nodes hold.
Results interpret(const Graph& graph, const std::map<std::string, Tensor>& values, const Shake& shake = {});

// What a device shall compute, and how exactly: within what shaken references differ by, so that how
// well-conditioned a graph is, kinks and ties included, is measured and not guessed.
class Expectation {
 public:
  // `shaken` makes the results of a seed. A bound is `factor` times the most that some of them differ by.
  Expectation(Results reference, std::function<Results(uint64_t seed)> shaken, double factor);

  // Where and how far the results are off; "" where they are not.
  std::string difference(const Results& actual);

 private:
  void shake_until(size_t count);
  std::string compare(const std::string& name, const Tensor& actual) const;

  Results reference_;
  std::function<Results(uint64_t seed)> make_;
  double factor_;
  std::vector<Results> shaken_;
};

// Holds the results of a device that was given `original` and runs `lowered`, what the passes made of it,
// against the reference. `precision` is what its products are in. "" where nothing is wrong.
std::string difference_to_reference(const Results& actual, const Graph& original, const Graph& lowered,
                                    const std::map<std::string, Tensor>& values, Precision precision);

// The same for graphs that the reference takes too long for. `plain` is of the same device in the same
// precision, by kernels that no pass has fused, and `exact` in fp32 by another device: how far rounding
// carries is what these two differ by. A relu's operand may be so near to zero that the others agree by
// chance: before something counts as wrong, `exact_of_nudged` makes exact results of other inputs, each moved
// within about a unit of fp32 by a seed from 1.
std::string difference_to_plain(const Results& actual, const Results& plain, const Results& exact,
                                Precision precision,
                                const std::function<Results(uint64_t seed)>& exact_of_nudged);

}  // namespace tessera::testing
