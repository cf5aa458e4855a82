// What is known of a value before it exists: its element type and shape.
#pragma once

#include <string>

#include "tessera/base/data_type.h"
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
  int64_t bytes() const { return element_count() * static_cast<int64_t>(size_of(data_type)); }
};

// "fp32[batch, 28, 28, 1]"
std::string to_string(const TensorType& type);

}  // namespace tessera
