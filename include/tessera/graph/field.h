// A named value that enters a network from outside: what data holds and what a network asks for.
#pragma once

#include <string>

#include "tessera/graph/tensor_type.h"

namespace tessera {

// {"tokens", int32[batch, tokens]}; what varies between batches is a symbol.
struct Field {
  std::string name;
  TensorType type;
  bool operator==(const Field&) const = default;
};

}  // namespace tessera
