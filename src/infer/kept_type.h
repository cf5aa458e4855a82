// How contents lie in a plan file.
#pragma once

#include "tessera/graph/tensor_type.h"

namespace tessera::infer {

// The type under which a file holds contents of this type: what safetensors files lack are bytes there.
TensorType kept_type(const TensorType& type);

}  // namespace tessera::infer
