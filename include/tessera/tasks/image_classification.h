// One class for each image.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "tessera/data/dataset.h"
#include "tessera/models/model.h"
#include "tessera/nn/augmentation.h"
#include "tessera/nn/images.h"
#include "tessera/nn/loss.h"
#include "tessera/nn/task.h"
#include "tessera/report/pictures.h"
#include "tessera/train/evaluator.h"
#include "tessera/train/prediction.h"

namespace tessera::tasks {

struct ImageClassificationOptions {
  nn::Loss loss = nn::cross_entropy();
  nn::ImageInput images = {};
  nn::AugmentationOptions augmentation = {};  // in training alone; of images that come as bytes
  bool open_size = false;                     // height and width are the symbols of those names
};

//   inputs:     images uint8, or as the options say, [batch, H, W, C]
//               labels int32 [batch]; rows with label -1 only fill the batch
//   objective:  loss; metric: accuracy, the share of rows whose largest logit is the label's. Rows mixed of
//               two have the losses of both labels by their shares, and the label of the larger share
//   served:     logits fp32 [batch, classes]
//   evaluation: loss fp32 [batch], what is trained, of each example; 0 in filling rows
//               prediction int32 [batch]
//               confidence fp32 [batch], the softmax of the prediction
//               rank int32 [batch], of networks of more than ten classes: how many of them have a larger
//               logit than the label's
// Throws Error(invalid_argument) naming the augmentation that is out of range or does not fit the images.
nn::Task image_classification(const models::Model& network, const ImageClassificationOptions& options = {});

inline constexpr int32_t kNotRanked = -1;

// One example and what the network said of it.
struct Prediction {
  int64_t index = 0;  // in the data set
  int32_t label = 0;
  int32_t predicted = 0;
  float confidence = 0;
  float loss = 0;
  int32_t rank = kNotRanked;
};

// What a report shows of the examples that were classified.
struct ClassifiedExamples {
  std::vector<std::string> class_names = {};
  std::function<report::Picture(int64_t index)> picture = {};  // none: the report has no pictures
};
ClassifiedExamples classified_images(std::shared_ptr<const data::Dataset> dataset);

// "loss" and "accuracy" of such a task, "top5" where it gives ranks (the share of examples whose label is
// among the five classes of the largest logits), and for the report its confusions and worst mistakes.
class ClassificationEvaluator : public train::Evaluator {
 public:
  explicit ClassificationEvaluator(ClassifiedExamples examples = {}) : examples_(std::move(examples)) {}

  void add(const data::Batch& batch, const Feeds& outputs) override;
  train::Numbers results() const override;
  Feeds state() const override;
  void merge(const Feeds& state) override;
  std::vector<train::ReportSection> sections() const override;

  const std::vector<Prediction>& predictions() const { return predictions_; }  // in the order of the data

 private:
  ClassifiedExamples examples_;
  std::vector<Prediction> predictions_;
};

// Makes such evaluators of the same examples.
train::EvaluatorMaker classification_evaluator(ClassifiedExamples examples = {});

// Each picture, of bytes, drawn in characters; what it was taken for; and how many were taken for what they
// are, where the batches have labels and these are not -1. A class without a name is called by its number, an
// image by the name of its place in the data, where there are such names, and by its number otherwise.
train::PredictionTextMaker classification_text(std::vector<std::string> class_names = {},
                                               std::vector<std::string> image_names = {});

}  // namespace tessera::tasks
