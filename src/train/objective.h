// Which of a task's objectives a step trains.
#pragma once

#include <string>

#include "tessera/nn/task.h"

namespace tessera::train {

// The measure that is called so, or the only one where `wanted` is empty. Throws Error(invalid_argument)
// naming what there is.
const nn::Measure& objective_of(const nn::Task& task, const nn::Training& training, const std::string& wanted,
                                const SymbolBindings& sizes);

}  // namespace tessera::train
