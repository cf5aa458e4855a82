// Shapes that group_norm and its gradient share.
#pragma once

#include "ops/normalization/normalization.h"

namespace tessera::ops {

inline AttributeSpecification group_norm_groups_attribute() {
  return {"groups", AttributeKind::integer, {}, "The channels are divided into so many groups."};
}

// The type of mean and inverse deviation: [N, groups].
inline TensorType group_norm_statistics(const InferenceCall& call, const TensorType& x) {
  const int64_t groups = call.attributes.integer("groups");
  call.require(x.rank() >= 2, "x must be [N, ..., C]");
  call.require(
      groups >= 1 && x.shape.back().divide_exactly(groups).has_value(),
      x.shape.back().to_string() + " channels cannot be divided into " + std::to_string(groups) + " groups");
  return {statistics_type(x.data_type), {x.shape.front(), Dimension(groups)}};
}

}  // namespace tessera::ops
