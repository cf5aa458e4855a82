// Images read between their pixels.
#pragma once

#include <string>
#include <vector>

#include "onnx/lowering.h"

namespace tessera::onnx {

struct Sampling {
  std::string mode = "linear";    // nearest, linear, cubic
  std::string padding = "zeros";  // zeros, border, reflection
  bool aligns_corners = true;     // reflects at the centers of the outermost pixels, not at their edges
};

// x: [N, C, spatial...]; coordinates: for each spatial axis [N, places...] in pixels. Result: [N, places...,
// C].
Value* sample(Value* x, const std::vector<Value*>& coordinates, const Sampling& sampling);

}  // namespace tessera::onnx
