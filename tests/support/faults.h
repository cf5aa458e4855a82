// What may be wrong with a kernel, derived from the operators: one term of a sum that is not added, an
// operand that is not read. A test of the kernel must notice each (see mutation.h).
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "tessera/graph/graph.h"

#include "support/compare.h"

namespace tessera::testing {

// Which index along an axis.
enum class Place { first, middle, last };

// A node reads something else than its operand.
struct OperandFault {
  std::string text;
  const Node* node = nullptr;
  size_t operand = 0;
  std::function<Tensor(const Tensor&)> alter;
  // Results whose index along these axes is the altered operand's are of the altered element itself and not
  // of a sum: they stay as they were.
  std::vector<size_t> own_axes;
  Place place = Place::last;
  int64_t unread = 0;  // how many places come after the last one that is read
};

// For every node that sums: one term of a sum (a channel, pixel, row or key) has no effect.
std::vector<OperandFault> left_out_rows(const Graph& graph);

// For every operand beside the main one (bias, residual, scale, mask, statistics): a neutral one in its
// place.
std::vector<OperandFault> dropped_operands(const Graph& graph);

// `altered` with what is not the fault's taken from `honest`.
Tensor without_own(const OperandFault& fault, const Tensor& altered, const Tensor& honest);

}  // namespace tessera::testing
