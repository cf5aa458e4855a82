// What a stage of a run is made of on the rank at hand.
#pragma once

#include <memory>
#include <optional>

#include "tessera/compile/communicator.h"
#include "tessera/data/source.h"
#include "tessera/recipe/recipe.h"
#include "tessera/train/workload.h"

#include "recipe/fitted_batch.h"

namespace tessera::recipe {

struct StageData {
  Recipe recipe = {};  // recipe_of_rank(), with the batch that was fitted
  train::Workload workload = {};
  std::shared_ptr<const data::Source> training = {};
  std::optional<FittedBatch> fitted = {};  // where the recipe asks for it
};

// Opens the training data of a recipe that is at_stage(). All ranks call it; null: alone. `kept`: the batch
// of all ranks that a run took, which goes on; none: it is fitted anew where the recipe asks for it. Throws
// Error(invalid_argument) where that cannot be, or the ranks cannot share the batch evenly.
StageData open_stage(const Recipe& recipe, Communicator* communicator, std::optional<int64_t> kept = {});

}  // namespace tessera::recipe
