#include "passes/permutation.h"

#include <algorithm>

#include "tessera/ops/functions.h"
#include "tessera/passes/fuse.h"

namespace tessera::passes {

bool moves_nothing(const SymbolicShape& shape, const Permutation& permutation) {
  Permutation wide;
  for (int64_t axis : permutation) {
    if (shape[static_cast<size_t>(axis)] != Dimension(1)) wide.push_back(axis);
  }
  return std::is_sorted(wide.begin(), wide.end());
}

Value* permuted(Value* value, const Permutation& permutation) {
  if (std::is_sorted(permutation.begin(), permutation.end())) return value;
  if (!moves_nothing(value->shape(), permutation)) return ops::transpose(value, permutation);
  SymbolicShape shape;
  for (int64_t axis : permutation) shape.push_back(value->shape()[static_cast<size_t>(axis)]);
  return shape == value->shape() ? value : ops::reshape(value, shape);
}

Value* simpler_transpose(const Node& transpose) {
  Permutation permutation = transpose.attributes().integers("permutation");
  Value* source = transpose.input(0);
  const Node* before = producer_of(source, "transpose");
  if (before != nullptr) {
    const Permutation& first = before->attributes().integers("permutation");
    for (int64_t& axis : permutation) axis = first[static_cast<size_t>(axis)];
    source = before->input(0);
  }
  if (before == nullptr && !moves_nothing(source->shape(), permutation)) return nullptr;
  return permuted(source, permutation);
}

}  // namespace tessera::passes
