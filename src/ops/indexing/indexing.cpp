#include "ops/indexing/indexing.h"

#include "tessera/base/error.h"

namespace tessera::ops {

std::vector<int64_t> read_indices(const Tensor& indices, int64_t extent, const Node& node) {
  std::vector<int64_t> result;
  for (int64_t i = 0; i < indices.size(); ++i) {
    const int64_t index = indices.data_type() == DataType::int64
                              ? indices.data<int64_t>()[static_cast<size_t>(i)]
                              : indices.data<int32_t>()[static_cast<size_t>(i)];
    require(index >= 0 && index < extent, ErrorCode::invalid_argument,
            "node '{}': {}: index {} (element {}) is outside [0, {})", node.name(), node.operator_name(),
            index, i, extent);
    result.push_back(index);
  }
  return result;
}

}  // namespace tessera::ops
