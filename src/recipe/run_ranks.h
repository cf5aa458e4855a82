// What a run of several ranks is to each of them.
#pragma once

#include "tessera/compile/communicator.h"
#include "tessera/data/source.h"
#include "tessera/recipe/recipe.h"
#include "tessera/train/trainer.h"

namespace tessera::recipe {

// The recipe with a GPU of the rank's own, if there are enough, where it numbers none; null: alone. All ranks
// call it.
Recipe with_device_of_rank(const Recipe& recipe, Communicator* communicator);
// What the rank builds its data and its trainer from: that with its part of each batch. Throws
// Error(invalid_argument) where they cannot share a batch evenly.
Recipe recipe_of_rank(const Recipe& recipe, Communicator* communicator);

// That all ranks are of the same program and were given the same recipe. Throws Error(invalid_argument) on
// all of them, naming the first that differs and how. Null: nothing to compare.
void require_same_run(Communicator* communicator, const Recipe& recipe);
// And that they read the same data: its size, and what a first batch holds.
void require_same_data(Communicator* communicator, const data::Source& source);
// And that they begin from the same weights and states, at the same place.
void require_same_state(Communicator* communicator, const train::Trainer& trainer);

}  // namespace tessera::recipe
