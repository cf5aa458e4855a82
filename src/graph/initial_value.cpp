#include "graph/initial_value.h"

#include <cstring>

#include "tessera/base/error.h"

namespace tessera {

void check_initial_value(InputRole role, const std::string& name, const TensorType& type,
                         const Tensor& initial) {
  require(role == InputRole::state, ErrorCode::invalid_graph,
          "'{}' is no state but has an initial value: {}s are given", name, to_string(role));
  require(type.is_static() && type.data_type == initial.data_type() && type.static_shape() == initial.shape(),
          ErrorCode::invalid_graph, "'{}' is {}, its initial value {}{}", name, to_string(type),
          to_string(initial.data_type()), to_string(initial.shape()));
}

Tensor spread(const Tensor& element, const Shape& shape) {
  Tensor result(element.data_type(), shape);
  const size_t bytes = element.bytes();
  for (size_t offset = 0; offset < result.bytes(); offset += bytes)
    std::memcpy(static_cast<char*>(result.raw()) + offset, element.raw(), bytes);
  return result;
}

bool is_spread(const Tensor& tensor) {
  if (tensor.size() == 0) return false;
  const size_t rest = tensor.bytes() - size_of(tensor.data_type());
  const auto* memory = static_cast<const char*>(tensor.raw());
  return std::memcmp(memory, memory + size_of(tensor.data_type()), rest) == 0;
}

}  // namespace tessera
