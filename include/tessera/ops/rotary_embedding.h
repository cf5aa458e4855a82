// Rotary positions (Su et al. 2021, arXiv:2104.09864).
#pragma once

#include <cstdint>

#include "tessera/graph/graph.h"

namespace tessera::ops {

struct RotaryOptions {
  int64_t axis = -3;         // of x, the tokens
  bool interleaved = false;  // numbers 2i and 2i + 1 are a pair, not i and width / 2 + i
  bool inverse = false;      // by minus the angles: the gradient to x
};

// x: [..., width], an even width, of which each pair is rotated by an angle of its token; with the default
// axis [..., tokens, heads, width]. cosines, sines: [tokens, width / 2], or for each along the first axis of
// x [batch, tokens, width / 2], in fp32 beside a 16-bit x. Throws Error(invalid_graph) for other shapes.
Value* rotary_embedding(Value* x, Value* cosines, Value* sines, const RotaryOptions& options = {});

}  // namespace tessera::ops
