// Activations that convolutions end with here.
#pragma once

#include <initializer_list>
#include <string>
#include <string_view>

#include "tessera/graph/graph.h"

namespace tessera::cuda {

inline const std::initializer_list<std::string_view> kConvolutionActivations = {"relu", "relu6", "clip",
                                                                                "silu", "sigmoid"};

// Whether fused convolutions may end with it: relu of any type, the others of 16 bits, where cuDNN's keep
// NaN.
bool ends_convolutions(const Node& activation);

// A member of a kernel's problem P, `static float end(float x)`: that activation; null for none.
std::string ending_text(const Node* activation);

}  // namespace tessera::cuda
