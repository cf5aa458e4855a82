// Training steps of image classifiers.
#pragma once

#include "tessera/tasks/image_classification.h"
#include "tessera/train/step.h"

namespace tessera::testing {

struct ClassifierStep {
  int64_t batch = 32;
  optim::Optimizer optimizer = optim::sgd();
  Precision precision = Precision::fp32;
  double clip_norm = 0;
  bool halting = false;
};

inline train::StepGraph training_step(const models::Model& network, const ClassifierStep& step) {
  return train::build_training_step(
      tasks::image_classification(network, {.images = {.type = DataType::fp32}}),
      {.sizes = {{"batch", step.batch}},
       .phase = {.groups = {{.optimizer = step.optimizer}}},
       .precision = step.precision,
       .clip_norm = step.clip_norm,
       .halting = step.halting});
}

// The mean loss of a step that ran.
inline double loss_of(const Feeds& outputs) {
  return train::mean_of(outputs, "loss");
}

}  // namespace tessera::testing
