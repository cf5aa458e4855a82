// What the reductions share: attributes, shape rule, reference loop.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "tessera/graph/operator.h"
#include "tessera/ops/functions.h"

#include "ops/axes.h"

namespace tessera::ops {

// The axes counted from the front, sorted; empty means all. Throws Error(invalid_graph) on an axis that is
// out of range or named twice.
std::vector<int64_t> normalized_axes(const std::vector<int64_t>& axes, int64_t rank);

// The shape with the reduced axes as ones, so that a result broadcasts against what it was reduced from.
SymbolicShape kept_shape(const SymbolicShape& shape, const std::vector<int64_t>& axes);
// The shape without the reduced axes.
SymbolicShape dropped_shape(const SymbolicShape& shape, const std::vector<int64_t>& axes);

// The product of the extents of the axes as a scalar of `type`: a constant, or count_elements while symbolic.
Value* axes_element_count(Value* x, const std::vector<int64_t>& axes, DataType type);

// For every element of `shape`, in row-major order, its place in the reduction over `axes`.
std::vector<int64_t> reduced_places(const Shape& shape, const std::vector<int64_t>& axes);

struct Reduction {
  std::string name;
  ReductionKind kind = ReductionKind::none;
  std::string documentation;
  TypeSet types = kNumericTypes;
  double start = 0;
  std::function<double(double sum, double element)> combine = {};
  std::function<double(double sum, int64_t count)> finish = {};  // empty: nothing left to do
  // Gradient to x; dy has the reduced axes as ones, y as the node made it.
  std::function<Value*(Value* x, Value* y, Value* dy, const std::vector<int64_t>& axes)> gradient;
};
OperatorSchema reduction(Reduction description);

}  // namespace tessera::ops
