// Where the heads of attention lie.
#pragma once

#include "types.cuh"

namespace tessera {

// Of [batch, heads, rows, width], in elements; what is in a row lies side by side.
struct HeadPlaces {
  int64 offset;            // of the first
  int64 batch, head, row;  // from one to the next
};

}  // namespace tessera
