// By how much a right kernel may differ from the reference, element by element.
#pragma once

#include <vector>

#include "tessera/graph/operator.h"

namespace tessera::testing {

// One number per element of an output. Infinite where nothing can be said: where the reference itself is
// finite or not by its rounding alone.
using Errors = std::vector<double>;

struct Outcome {
  std::vector<Tensor> outputs;  // of the reference
  std::vector<Errors> errors;   // one list per output
};

// Runs the node's reference. Of one operator, the errors are those of support/tolerance.h with the terms and
// magnitudes of these inputs. Of a fused node, and of a composite operator, they are how far its results move
// when each of the operators inside is off by what it may be off by. Of an operator that is neither (norms,
// attention) they are how far its results move when its inputs do. `tf32`: products of what is made inside a
// fused node, or attention, round their operands to TF32; inputs are such numbers already.
Outcome run_with_errors(const Node& node, const std::vector<const Tensor*>& inputs, bool tf32);

}  // namespace tessera::testing
