#include "graph/initial_value.h"

#include "tessera/base/elements.h"
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
  for (int64_t i = 0; i < result.size(); ++i)
    copy_run(element.data_type(), element.raw(), 0, result.raw(), i, 1);
  return result;
}

bool is_spread(const Tensor& tensor) {
  if (tensor.size() == 0) return false;
  Tensor first(tensor.data_type(), {1});
  copy_run(tensor.data_type(), tensor.raw(), 0, first.raw(), 0, 1);
  return spread(first, tensor.shape()).identical(tensor);
}

}  // namespace tessera
