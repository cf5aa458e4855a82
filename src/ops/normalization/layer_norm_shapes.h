// Shapes that layer_norm and its gradient share.
#pragma once

#include "ops/normalization/normalization.h"

namespace tessera::ops {

inline AttributeSpecification layer_norm_axes() {
  return {"axes", AttributeKind::integer, 1, "How many of the last axes are normalized together."};
}

inline AttributeSpecification layer_norm_centered() {
  return {"centered", AttributeKind::boolean, true,
          "Whether the mean is subtracted; else it is 0, as in root mean square norms."};
}

// The type of mean and inverse deviation: one number per row.
inline TensorType layer_norm_statistics(const InferenceCall& call, const TensorType& x) {
  const int64_t axes = call.attributes.integer("axes");
  call.require(axes >= 1 && axes <= x.rank(), "axes must be from 1 to the rank of x");
  return {statistics_type(x.data_type), {x.shape.begin(), x.shape.end() - axes}};
}

inline SymbolicShape layer_norm_row(const InferenceCall& call, const TensorType& x) {
  return {x.shape.end() - call.attributes.integer("axes"), x.shape.end()};
}

}  // namespace tessera::ops
