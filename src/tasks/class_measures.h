// What tasks measure that give each example one of some classes.
#pragma once

#include <vector>

#include "tessera/nn/loss.h"
#include "tessera/nn/task.h"

namespace tessera::tasks {

// Networks of more classes are also measured by whether the label is among the first five.
inline constexpr int64_t kFewClasses = 10;

// The objective "loss" and the metric "accuracy".
nn::Training class_measures(Value* losses, Value* logits, Value* labels, Value* weights);

// "loss", "prediction" and "confidence" of each row, and of more than a few classes "rank": what a
// ClassificationEvaluator reads. logits: fp32 [batch, classes].
nn::Values class_evaluation(const nn::Loss& loss, Value* logits, Value* labels, int64_t classes);

std::vector<nn::Metric> class_metrics(int64_t classes);

}  // namespace tessera::tasks
