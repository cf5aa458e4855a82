#include "tessera/train/goal.h"

namespace tessera::train {

const nn::Metric* goal_metric(const std::vector<nn::Metric>& metrics, const Numbers& results,
                              const std::string& goal) {
  for (const nn::Metric& metric : metrics) {
    if (results.contains(metric.name) && (goal.empty() || goal == metric.name)) return &metric;
  }
  return nullptr;
}

bool is_better(const nn::Metric& metric, double result, const std::optional<double>& best) {
  return !best.has_value() || (metric.larger_is_better ? result > *best : result < *best);
}

}  // namespace tessera::train
