// By which result weights are chosen.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "tessera/nn/task.h"
#include "tessera/train/history.h"

namespace tessera::train {

// The metric called `goal`, or, where that is empty, the first one; of those that have a result. Null: none
// has.
const nn::Metric* goal_metric(const std::vector<nn::Metric>& metrics, const Numbers& results,
                              const std::string& goal = {});

// Whether a result of the metric is better than the best one so far; none: there was none.
bool is_better(const nn::Metric& metric, double result, const std::optional<double>& best);

}  // namespace tessera::train
