// Trainings of networks in the format on the tiny data.
#pragma once

#include <vector>

#include "tessera/models/network_file.h"
#include "tessera/train/trainer.h"

#include "train/tiny.h"

namespace tessera::onnx {

using testing::kTinyClasses;
using testing::kTinySize;

inline constexpr models::ClassifierOptions kTiny{
    .classes = kTinyClasses, .image_size = kTinySize, .channels = 1};
inline constexpr uint64_t kSeed = 5;

inline nn::Task task_of(const models::Model& network) {
  return tasks::image_classification(network, {.images = testing::tiny_images()});
}

inline train::Trainer trainer_of(const nn::Task& task) {
  return train::Trainer(
      task, {.optimizer = optim::sgd({.learning_rate = 0.1, .momentum = 0.9, .weight_decay = 1e-3}),
             .device = Device::reference(),
             .seed = kSeed});
}

inline std::vector<double> losses_of(train::Trainer& trainer) {
  std::vector<double> losses;
  train::FitOptions fit{.epochs = 2};
  fit.on_step = [&](const train::StepEvent& event) { losses.push_back(event.measures.at("loss")); };
  trainer.fit(testing::tiny_loader(), fit);
  return losses;
}

}  // namespace tessera::onnx
