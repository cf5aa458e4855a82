// What, added to an attention's scores, hides keys.
#pragma once

#include "tessera/graph/graph.h"

namespace tessera::nn {

// Booleans of any shape, true where a key is hidden; fp32 of that shape. Finite, so that a query from which
// all is hidden attends to all of it.
Value* hidden_scores(Value* hides);

}  // namespace tessera::nn
