// A pointwise convolution and the depthwise one that alone reads it, as in inverted residuals (Sandler et al.
// 2018): what the first makes of a part of an image stays in the second-level cache until the second has read
// it.
#pragma once

#include "tessera/passes/fusion_pattern.h"

namespace tessera::cpu {

// Kind "expanded_depthwise", of frozen weights. Each convolution has the roles of contraction_pattern(),
// those of the first with the prefix "expand_".
FusionPattern expanded_depthwise_pattern();

}  // namespace tessera::cpu
