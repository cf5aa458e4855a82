#include "tasks/class_measures.h"

#include "tessera/ops/functions.h"

#include "tasks/counted_labels.h"

namespace tessera::tasks {
namespace {

// How many classes a row's logits put before its label; NaN puts them all there.
Value* rank_of(Value* logits, Value* labels, int64_t classes) {
  Value* is_label = ops::one_hot(labels, classes, DataType::boolean);
  Value* own = ops::reduce_sum(ops::select(is_label, logits, ops::constant_like(logits, 0)),
                               {.axes = {1}, .keep_dimensions = true});
  Value* not_ahead = ops::cast(ops::less_equal(logits, own), DataType::fp32);
  Value* ahead = ops::subtract(ops::constant_like(not_ahead, 1), not_ahead);
  return ops::cast(ops::reduce_sum(ahead, {.axes = {1}}), DataType::int32);
}

}  // namespace

nn::Training class_measures(Value* losses, Value* logits, Value* labels, Value* weights) {
  return {.objectives = {nn::mean_of("loss", losses, weights)},
          .metrics = {nn::mean_of("accuracy", hits_of(logits, labels), weights)}};
}

nn::Values class_evaluation(const nn::Loss& loss, Value* logits, Value* labels, int64_t classes) {
  const CountedLabels rows = counted_labels(labels);
  nn::Values values{{"loss", ops::multiply(loss.examples(logits, rows.labels), rows.counts)},
                    {"prediction", ops::argmax(logits)},
                    {"confidence", ops::reduce_max(ops::softmax(logits), {.axes = {1}})}};
  if (classes > kFewClasses) values.add("rank", rank_of(logits, rows.labels, classes));
  return values;
}

std::vector<nn::Metric> class_metrics(int64_t classes) {
  std::vector<nn::Metric> metrics{{.name = "accuracy", .percent = true, .larger_is_better = true}};
  if (classes > kFewClasses) metrics.push_back({.name = "top5", .percent = true, .larger_is_better = true});
  metrics.push_back({.name = "loss"});
  return metrics;
}

}  // namespace tessera::tasks
