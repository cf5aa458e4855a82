// The moving moments that Adam and LAMB share.
#pragma once

#include "tessera/ops/functions.h"
#include "tessera/optim/optimizer.h"

namespace tessera::optim {

// m = beta1*m + (1-beta1)*g; v = beta2*v + (1-beta2)*g^2; returns m^ / (sqrt(v^) + epsilon), both
// bias-corrected.
Value* adaptive_direction(UpdateContext& context, Value* gradient, double beta1, double beta2,
                          double epsilon);

}  // namespace tessera::optim
