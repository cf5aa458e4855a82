// What a run is given.
#pragma once

#include <map>
#include <string>

#include "tessera/base/tensor.h"

namespace tessera {

// Inputs of a graph by name.
using Feeds = std::map<std::string, Tensor>;

}  // namespace tessera
