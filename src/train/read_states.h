// The states of what is read of a network, such as memories, which training does not have.
#pragma once

#include <vector>

#include "tessera/compile/variables.h"
#include "tessera/nn/context.h"

namespace tessera::train {

// Makes those of the list that are not there, and makes anew those of another shape; whether there were any.
// What was compiled for them before must not run any more.
bool begin_states(Variables& variables, const std::vector<nn::Variable>& list);

}  // namespace tessera::train
