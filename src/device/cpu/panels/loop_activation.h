// Activations that need more than limits, over what our own loops have just stored.
#pragma once

#include <cstdint>

namespace tessera::cpu {

enum class LoopActivation : uint8_t { none, gelu, gelu_tanh, silu, hard_swish, sigmoid };

// y[rows, width] in place; a row is `row` elements after the one before. fp32.
void activate(LoopActivation activation, float* y, int64_t row, int64_t rows, int64_t width);

}  // namespace tessera::cpu
