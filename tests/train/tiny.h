// A problem that a small network learns in a second: which of three stripes of an image is bright.
#pragma once

#include <functional>
#include <limits>
#include <memory>
#include <string>
#include <vector>

#include "tessera/base/random.h"
#include "tessera/data/loader.h"
#include "tessera/nn/layers.h"
#include "tessera/tasks/image_classification.h"
#include "tessera/train/trainer.h"

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

inline data::LoaderOptions tiny_loading(int64_t batch = 8) {
  return {.batch_size = batch,
          .seed = 11,
          .augmentation = {.horizontal_flip = false, .mean = {0.3F}, .deviation = {0.3F}}};
}

inline data::Loader tiny_loader(int64_t batch = 8) {
  return {tiny_dataset(), tiny_loading(batch)};
}

inline data::Loader tiny_evaluation(int64_t batch = 8) {
  data::LoaderOptions options = tiny_loading(batch);
  options.shuffle = false;
  options.drop_last = false;
  return {tiny_dataset(45, 4), options};
}

inline models::ModelOptions tiny_options() {
  models::ModelOptions options;
  options.classes = kTinyClasses;
  options.image_size = kTinySize;
  options.channels = 1;
  return options;
}

inline nn::Task tiny_perceptron(double dropout = 0, const nn::Loss& loss = nn::cross_entropy()) {
  models::ModelOptions options = tiny_options();
  options.hidden = {12};
  options.dropout = dropout;
  return tasks::image_classification(models::mlp(options), {.loss = loss});
}

inline nn::Task tiny_resnet(double dropout = 0) {
  models::ModelOptions options = tiny_options();
  options.width = 4;
  options.blocks = {1, 1};
  options.dropout = dropout;
  return tasks::image_classification(models::resnet_small(options));
}

// Of a network from images to logits.
inline nn::Task tiny_task(const std::string& name, std::function<Value*(nn::Context&, Value*)> forward) {
  return tasks::image_classification(models::Model{name, tiny_options(), std::move(forward)});
}

inline nn::Task tiny_linear() {
  return tiny_task("linear", [](nn::Context& context, Value* x) {
    return nn::linear(context, "fc1", nn::flatten(x), kTinyClasses);
  });
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

// Hands out the tiny data with one broken pixel.
class BrokenDataset : public data::Dataset {
 public:
  explicit BrokenDataset(int64_t broken) : broken_(broken) {}
  int64_t size() const override { return whole_->size(); }
  const Shape& image_shape() const override { return whole_->image_shape(); }
  const std::vector<std::string>& class_names() const override { return whole_->class_names(); }
  void read(int64_t index, std::span<float> image, int32_t& label) const override {
    whole_->read(index, image, label);
    if (index == broken_) image[7] = std::numeric_limits<float>::quiet_NaN();
  }

 private:
  std::shared_ptr<const data::Dataset> whole_ = tiny_dataset();
  int64_t broken_;
};

// Which meets it in its third batch.
inline data::Loader broken_loader() {
  return {std::make_shared<BrokenDataset>(20), {.batch_size = 8, .shuffle = false}};
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

}  // namespace tessera::testing
