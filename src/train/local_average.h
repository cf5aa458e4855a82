// Local SGD (Stich, "Local SGD Converges Fast and Communicates Little", 2019): ranks that update their own
// parameters, each by its own batches, and take the means of all now and then.
#pragma once

#include <set>

#include "train/over_ranks.h"
#include "train/step_guard.h"

namespace tessera::train {

// What the graph updates becomes the mean over the ranks, after each has made its update; the loss scale and
// the steps since it changed become the least of the ranks'. Sums of accumulated gradients are left alone:
// they are none after an update; so are states of rows, which each rank has of its own. Where the step of one
// rank does not go on, no state of any changes. To be called when the guard has been applied.
void average_updates(Graph& graph, const OverRanks& ranks, StepGuard& guard,
                     const std::set<const Value*>& of_rows);

}  // namespace tessera::train
