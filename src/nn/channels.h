// Numbers of the channels of images.
#pragma once

#include <vector>

#include "tessera/graph/graph.h"
#include "tessera/ops/functions.h"

namespace tessera::nn {

// A constant that broadcasts over the channels of `x`: a number of each, or one of all.
inline Value* of_channels(Value* x, const std::vector<float>& values) {
  if (values.size() == 1) return ops::constant_like(x, values[0]);
  return ops::constant(x->graph(), Tensor::from<float>({std::ssize(values)}, values));
}

}  // namespace tessera::nn
