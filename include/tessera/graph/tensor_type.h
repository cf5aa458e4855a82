// What is known of a value before it exists: its element type and shape.
#pragma once

#include <string>

#include "tessera/base/tensor.h"
#include "tessera/graph/dimension.h"

namespace tessera {

struct TensorType {
  DataType data_type = DataType::fp32;
  SymbolicShape shape;

  bool operator==(const TensorType&) const = default;
  int64_t rank() const { return static_cast<int64_t>(shape.size()); }
  bool is_static() const { return tessera::is_static(shape); }
  // The next three throw Error(invalid_argument) while the shape holds a symbol.
  Shape static_shape() const { return to_static(shape); }
  int64_t element_count() const { return tessera::element_count(static_shape()); }
  // Also throws what tensor_bytes() does.
  int64_t bytes() const { return tensor_bytes(data_type, static_shape()); }
};

// Throws Error(invalid_graph) unless a graph may hold such a tensor: at most kMaximumRank axes, and where the
// shape holds no symbol, no negative extent and not more than kMaximumTensorBytes.
inline constexpr size_t kMaximumRank = 64;
void check_type(const TensorType& type);

// "fp32[batch, 28, 28, 1]"
std::string to_string(const TensorType& type);

}  // namespace tessera
