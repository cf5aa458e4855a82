#include "compile/finite.h"

#include <cmath>

#include "tessera/base/error.h"
#include "tessera/base/tensor.h"

namespace tessera {

void check_finite(const Node& node, const std::vector<void*>& outputs, Queue& queue) {
  for (size_t i = 0; i < outputs.size(); ++i) {
    const TensorType& type = node.output(i)->type();
    if (!is_floating(type.data_type)) continue;
    Tensor tensor(type.data_type, type.static_shape());
    queue.copy_to_host(tensor.raw(), outputs[i], type.bytes());
    for (int64_t e = 0; e < tensor.size(); ++e) {
      require(std::isfinite(tensor.at(e)), ErrorCode::not_finite, "node '{}' made {} at element {} of {}: {}",
              node.name(), tensor.at(e), e, to_string(type), print(node).substr(0, 300));
    }
  }
}

}  // namespace tessera
