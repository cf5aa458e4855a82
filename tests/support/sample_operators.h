// Operators that only tests have, for what the registry's own do not use yet.
#pragma once

namespace tessera::testing {

// Registers, once in a process:
// - "sample_affine"(x, [bias], [scale], offset): x * scale + bias - offset of one shape, an optional operand
//   before one that is not. It has a gradient, and its products are in 16 bits where those of a matmul are.
// - "sample_choice"(condition, values...), control with two bodies: the first one's results where the
//   condition is true, else the second one's.
// - "sample_lists"(x) {reals factors = [], texts labels = []}: x.
void register_sample_operators();

}  // namespace tessera::testing
