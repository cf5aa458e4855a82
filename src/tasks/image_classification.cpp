#include "tessera/tasks/image_classification.h"

#include <algorithm>

#include "tessera/base/error.h"
#include "tessera/ops/functions.h"
#include "tessera/tasks/classification_sections.h"

#include "tasks/class_measures.h"
#include "tasks/counted_labels.h"

namespace tessera::tasks {
namespace {

constexpr size_t kMistakes = 24;  // that a report shows
constexpr int32_t kTop = 5;

using Logits = std::function<Value*(nn::Context& context, Value* images)>;

// Losses are linear in what is aimed at, so that those of two labels by their shares are that of a soft
// label; of the squared error this holds but for what no logit changes.
nn::Training training(nn::Context& context, const ImageClassificationOptions& options, const Logits& network,
                      const nn::Values& inputs) {
  const nn::AugmentationOptions& augmentation = options.augmentation;
  const CountedLabels rows = counted_labels(inputs["labels"]);
  Value* images = inputs["images"];
  if (augmentation.changes_images() || augmentation.mixes())
    images = nn::augment_images(context, images, augmentation);
  if (!augmentation.mixes()) {
    Value* logits = network(context, images);
    return class_measures(options.loss.examples(logits, rows.labels), logits, rows.labels, rows.counts);
  }
  const nn::Mixed mixed = nn::mix_images(context, images, inputs["labels"], augmentation);
  Value* partners = counted_labels(mixed.partner_label).labels;
  Value* logits = network(context, mixed.images);
  Value* losses =
      ops::add(ops::multiply(mixed.share, options.loss.examples(logits, rows.labels)),
               ops::multiply(ops::subtract(1, mixed.share), options.loss.examples(logits, partners)));
  Value* own = ops::greater_equal(mixed.share, ops::constant_like(mixed.share, 0.5));
  return class_measures(losses, logits, ops::select(own, rows.labels, partners), rows.counts);
}

std::vector<uint8_t> pixels_of(const data::Dataset& dataset, int64_t index) {
  std::vector<uint8_t> pixels(static_cast<size_t>(element_count(dataset.image_shape())));
  int32_t label = 0;
  dataset.read(index, pixels, label);
  return pixels;
}

report::Picture picture_of(const data::Dataset& dataset, int64_t index) {
  const Shape& shape = dataset.image_shape();
  return {.pixels = pixels_of(dataset, index), .height = shape[0], .width = shape[1], .channels = shape[2]};
}

}  // namespace

nn::Task image_classification(const models::Model& network, const ImageClassificationOptions& options) {
  const Dimension batch = Dimension::symbol("batch");
  SymbolicShape shape = network.input_type(batch).shape;
  if (options.open_size) {
    shape[1] = Dimension::symbol("height");
    shape[2] = Dimension::symbol("width");
  }
  const nn::Loss loss = options.loss;
  const nn::AugmentationOptions& augmentation = options.augmentation;
  nn::check_augmentation(augmentation, network.input_type(batch).shape.back().value());
  require(options.images.type == DataType::uint8 || !(augmentation.changes_images() || augmentation.mixes()),
          ErrorCode::invalid_argument, "images of {} are not augmented: that is of bytes",
          to_string(options.images.type));
  const Logits logits = [network, input = options.images](nn::Context& context, Value* images) {
    return network.forward(context, nn::normalize_images(images, input));
  };
  return {.name = "image_classification",
          .network = network.name,
          .inputs = {{"images", {options.images.type, shape}}, {"labels", {DataType::int32, {batch}}}},
          .metrics = class_metrics(network.options.classes),
          .samples = "images",
          .training = [=](nn::Context& context,
                          const nn::Values& inputs) { return training(context, options, logits, inputs); },
          .inference = [=](nn::Context& context, const nn::Values& inputs) -> nn::Values {
            return {{"logits", logits(context, inputs["images"])}};
          },
          .evaluation =
              [=](nn::Context& context, const nn::Values& inputs) {
                return class_evaluation(loss, ops::cast(logits(context, inputs["images"]), DataType::fp32),
                                        inputs["labels"], network.options.classes);
              }};
}

void ClassificationEvaluator::add(const data::Batch& batch, const Feeds& outputs) {
  const auto losses = outputs.at("loss").data<float>();
  const auto predictions = outputs.at("prediction").data<int32_t>();
  const auto confidences = outputs.at("confidence").data<float>();
  const auto labels = batch.fields.at("labels").data<int32_t>();
  const auto ranks = outputs.find("rank");
  for (size_t row = 0; row < static_cast<size_t>(batch.samples); ++row) {
    if (labels[row] < 0) continue;  // an example that could not be read
    const int32_t rank = ranks != outputs.end() ? ranks->second.data<int32_t>()[row] : kNotRanked;
    predictions_.push_back(
        {batch.indices[row], labels[row], predictions[row], confidences[row], losses[row], rank});
  }
}

train::Numbers ClassificationEvaluator::results() const {
  if (predictions_.empty()) return {};
  double loss = 0;
  int64_t correct = 0;
  int64_t among_top = 0;
  for (const Prediction& prediction : predictions_) {
    loss += prediction.loss;
    correct += prediction.label == prediction.predicted ? 1 : 0;
    among_top += prediction.rank < kTop ? 1 : 0;
  }
  const auto count = static_cast<double>(predictions_.size());
  train::Numbers results{{"loss", loss / count}, {"accuracy", static_cast<double>(correct) / count}};
  if (predictions_.front().rank != kNotRanked) results["top5"] = static_cast<double>(among_top) / count;
  return results;
}

Feeds ClassificationEvaluator::state() const {
  const Shape shape{std::ssize(predictions_)};
  Feeds state{{"index", Tensor(DataType::int64, shape)},     {"label", Tensor(DataType::int32, shape)},
              {"predicted", Tensor(DataType::int32, shape)}, {"confidence", Tensor(DataType::fp32, shape)},
              {"loss", Tensor(DataType::fp32, shape)},       {"rank", Tensor(DataType::int32, shape)}};
  for (size_t i = 0; i < predictions_.size(); ++i) {
    state["index"].data<int64_t>()[i] = predictions_[i].index;
    state["label"].data<int32_t>()[i] = predictions_[i].label;
    state["predicted"].data<int32_t>()[i] = predictions_[i].predicted;
    state["confidence"].data<float>()[i] = predictions_[i].confidence;
    state["loss"].data<float>()[i] = predictions_[i].loss;
    state["rank"].data<int32_t>()[i] = predictions_[i].rank;
  }
  return state;
}

void ClassificationEvaluator::merge(const Feeds& state) {
  const Tensor& index = train::state_tensor(state, "index", DataType::int64);
  const Tensor& label = train::state_tensor(state, "label", DataType::int32);
  const Tensor& predicted = train::state_tensor(state, "predicted", DataType::int32);
  const Tensor& confidence = train::state_tensor(state, "confidence", DataType::fp32);
  const Tensor& loss = train::state_tensor(state, "loss", DataType::fp32);
  const Tensor& rank = train::state_tensor(state, "rank", DataType::int32);
  for (const Tensor* column : {&label, &predicted, &confidence, &loss, &rank}) {
    require(column->shape() == index.shape(), ErrorCode::invalid_argument,
            "the predictions of another evaluator have {} and {} rows", index.size(), column->size());
  }
  for (size_t i = 0; i < static_cast<size_t>(index.size()); ++i) {
    predictions_.push_back({index.data<int64_t>()[i], label.data<int32_t>()[i], predicted.data<int32_t>()[i],
                            confidence.data<float>()[i], loss.data<float>()[i], rank.data<int32_t>()[i]});
  }
  std::ranges::stable_sort(predictions_, {}, &Prediction::index);
}

std::vector<train::ReportSection> ClassificationEvaluator::sections() const {
  if (predictions_.empty()) return {};
  const std::vector<std::string>& classes = examples_.class_names;
  Confusion confusion;
  std::vector<Prediction> wrong;
  for (const Prediction& prediction : predictions_) {
    ++confusion[{prediction.label, prediction.predicted}];
    if (prediction.label != prediction.predicted) wrong.push_back(prediction);
  }
  std::vector<train::ReportSection> sections{confusion_section(classes, confusion)};
  if (!examples_.picture || wrong.empty()) return sections;
  std::stable_sort(wrong.begin(), wrong.end(),
                   [](const Prediction& a, const Prediction& b) { return a.loss > b.loss; });
  wrong.resize(std::min(wrong.size(), kMistakes));
  std::vector<Mistake> mistakes;
  for (const Prediction& prediction : wrong) {
    mistakes.push_back({.picture = examples_.picture(prediction.index),
                        .index = prediction.index,
                        .truth = prediction.label,
                        .prediction = prediction.predicted,
                        .confidence = prediction.confidence});
  }
  sections.push_back(mistakes_section(classes, mistakes));
  return sections;
}

ClassifiedExamples classified_images(std::shared_ptr<const data::Dataset> dataset) {
  std::vector<std::string> classes = dataset->class_names();
  return {std::move(classes),
          [dataset = std::move(dataset)](int64_t index) { return picture_of(*dataset, index); }};
}

train::EvaluatorMaker classification_evaluator(ClassifiedExamples examples) {
  return [examples = std::move(examples)] { return std::make_unique<ClassificationEvaluator>(examples); };
}

}  // namespace tessera::tasks
