// A problem that a small network learns in a second: which of three stripes of an image is bright.
#pragma once

#include <functional>
#include <limits>
#include <memory>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "tessera/base/random.h"
#include "tessera/data/loader.h"
#include "tessera/data/rows.h"
#include "tessera/nn/layers.h"
#include "tessera/tasks/image_classification.h"
#include "tessera/train/checkpoint.h"
#include "tessera/train/trainer.h"

#include "support/temporary_folder.h"

namespace tessera::testing {

inline constexpr int64_t kTinySize = 6;
inline constexpr int64_t kTinyClasses = 3;

// uint8 images [count, 6, 6] of noise with two bright columns, and uint8 labels: which third they lie in.
struct TinyData {
  Tensor images;
  Tensor labels;
};

inline TinyData tiny_data(int64_t count, uint64_t seed = 3) {
  TinyData data{Tensor(DataType::uint8, {count, kTinySize, kTinySize}), Tensor(DataType::uint8, {count})};
  const Random random(seed);
  for (int64_t n = 0; n < count; ++n) {
    const int64_t label = static_cast<int64_t>(random.below(static_cast<uint64_t>(n), kTinyClasses));
    data.labels.set(n, static_cast<double>(label));
    for (int64_t i = 0; i < kTinySize * kTinySize; ++i) {
      const int64_t element = n * kTinySize * kTinySize + i;
      const double noise = 100 * random.uniform(static_cast<uint64_t>(count + element));
      data.images.set(element, noise + (i % kTinySize / 2 == label ? 120 : 0));
    }
  }
  return data;
}

inline std::shared_ptr<const data::Dataset> tiny_dataset(int64_t count = 48, uint64_t seed = 3) {
  const TinyData data = tiny_data(count, seed);
  return std::make_shared<data::ClassificationDataset>(data.images, data.labels);
}

inline data::BatchOptions tiny_loading(int64_t batch = 8) {
  return {.batch_size = batch, .seed = 11};
}

inline data::Loader tiny_loader(int64_t batch = 8) {
  return {tiny_dataset(), tiny_loading(batch)};
}

inline data::Loader tiny_evaluation(int64_t batch = 8) {
  data::BatchOptions options = tiny_loading(batch);
  options.shuffle = false;
  options.drop_last = false;
  return {tiny_dataset(45, 4), options};
}

inline nn::ImageInput tiny_images() {
  return {.mean = {0.3F}, .deviation = {0.3F}};
}

inline nn::Task tiny_perceptron(double dropout = 0, const nn::Loss& loss = nn::cross_entropy()) {
  const models::Model network = models::mlp(
      {.classes = kTinyClasses, .image_size = kTinySize, .channels = 1, .hidden = {12}, .dropout = dropout});
  return tasks::image_classification(network, {.loss = loss, .images = tiny_images()});
}

// Everything that images of one channel can be augmented by.
inline nn::Task tiny_augmented() {
  const models::Model network =
      models::mlp({.classes = kTinyClasses, .image_size = kTinySize, .channels = 1, .hidden = {12}});
  return tasks::image_classification(network, {.images = tiny_images(),
                                               .augmentation = {.brightness = 0.2,
                                                                .contrast = 0.2,
                                                                .erasing = 0.3,
                                                                .mixup = 0.2,
                                                                .cutmix = 1,
                                                                .mix_probability = 0.7}});
}

inline nn::Task tiny_resnet(double dropout = 0) {
  const models::Model network = models::resnet_small({.classes = kTinyClasses,
                                                      .image_size = kTinySize,
                                                      .channels = 1,
                                                      .width = 4,
                                                      .blocks = {1, 1},
                                                      .dropout = dropout});
  return tasks::image_classification(network, {.images = tiny_images()});
}

// Of a network from images to logits.
inline nn::Task tiny_task(const std::string& name, std::function<Value*(nn::Context&, Value*)> forward,
                          const nn::ImageInput& images = tiny_images()) {
  return tasks::image_classification(models::Model{name, {kTinyClasses, kTinySize, 1}, std::move(forward)},
                                     {.images = images});
}

inline nn::Task tiny_linear(const nn::ImageInput& images = tiny_images()) {
  return tiny_task(
      "linear",
      [](nn::Context& context, Value* x) { return nn::linear(context, "fc1", nn::flatten(x), kTinyClasses); },
      images);
}

// An evaluation by an epoch of the loader, which outlives it.
inline train::EvaluationPlan evaluation_by(const data::Loader& loader) {
  return {.source = &loader, .evaluator = tasks::classification_evaluator()};
}

inline train::Numbers results_on(const data::Loader& loader, train::Trainer& trainer) {
  tasks::ClassificationEvaluator evaluator;
  trainer.evaluate(loader, evaluator);
  return evaluator.results();
}

// The tiny data for networks that take images in fp32; a broken one has in its third batch a pixel that is no
// number.
inline data::Rows tiny_rows(bool broken = false) {
  const TinyData data = tiny_data(48);
  Tensor images = data.images.cast(DataType::fp32).reshape({48, kTinySize, kTinySize, 1});
  if (broken) images.set(20 * kTinySize * kTinySize + 7, std::numeric_limits<double>::quiet_NaN());
  return {{{"images", images}, {"labels", data.labels.cast(DataType::int32)}},
          {.batch_size = 8, .shuffle = false}};
}

inline nn::Task tiny_linear_of_rows() {
  return tiny_linear({.type = DataType::fp32});
}

// The names of the tensors that are not bit for bit the same; empty when all are.
inline std::vector<std::string> different_tensors(const std::map<std::string, Tensor>& a,
                                                  const std::map<std::string, Tensor>& b) {
  std::vector<std::string> names;
  for (const auto& [name, tensor] : a) {
    if (!b.contains(name) || !b.at(name).identical(tensor)) names.push_back(name);
  }
  for (const auto& [name, tensor] : b) {
    if (!a.contains(name)) names.push_back(name);
  }
  return names;
}

// A training of two epochs that stops after so many steps and goes on in another trainer, against one that
// does not stop.
inline void expect_same_bits_when_resumed(const std::function<train::Trainer()>& make,
                                          const data::Source& source, int64_t steps) {
  train::Trainer straight = make();
  straight.fit(source, {.epochs = 2});
  const TemporaryFolder folder;
  train::Trainer first = make();
  first.fit(source, {.epochs = 2, .checkpoints = folder.path(), .max_steps = steps});
  train::Trainer second = make();
  second.restore(load_checkpoint(folder / "last.safetensors"), "last");
  EXPECT_TRUE(second.fit(source, {.epochs = 2}).completed);
  EXPECT_EQ(different_tensors(second.training_state().tensors, straight.training_state().tensors),
            std::vector<std::string>{});
}

}  // namespace tessera::testing
