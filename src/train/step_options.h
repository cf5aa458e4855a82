// Whether a training step can be built as asked.
#pragma once

#include "tessera/train/step.h"

namespace tessera::train {

// Throws Error(invalid_argument), as build_training_step() does.
void check_step_options(const StepOptions& options);

// Whether ranks make steps without each other.
bool is_local(const StepOptions& options);

}  // namespace tessera::train
