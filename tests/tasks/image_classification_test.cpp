#include "tessera/tasks/image_classification.h"

#include <cmath>

#include <gtest/gtest.h>

#include "tessera/data/rows.h"
#include "tessera/graph/operator.h"
#include "tessera/ops/functions.h"
#include "tessera/train/task_registry.h"
#include "tessera/train/trainer.h"

#include "support/expect_error.h"
#include "train/tiny.h"

namespace tessera::testing {
namespace {

data::Batch two_of_three() {
  return {.fields = {{"labels", Tensor::from<int32_t>({3}, {1, 2, -1})}}, .samples = 2, .indices = {7, 3}};
}

Feeds said(int32_t second) {
  return {{"loss", Tensor::from<float>({3}, {0.25F, 1.75F, 99})},
          {"prediction", Tensor::from<int32_t>({3}, {1, second, 0})},
          {"confidence", Tensor::from<float>({3}, {0.9F, 0.6F, 1})}};
}

TEST(ClassificationEvaluator, CountsExamplesAndNothingElse) {
  tasks::ClassificationEvaluator evaluator;
  EXPECT_TRUE(evaluator.results().empty());
  evaluator.add(two_of_three(), said(0));
  EXPECT_EQ(evaluator.results(), (train::Numbers{{"accuracy", 0.5}, {"loss", 1.0}}));
  ASSERT_EQ(evaluator.predictions().size(), 2U);
  EXPECT_EQ(evaluator.predictions()[0].index, 7);
  EXPECT_EQ(evaluator.sections().size(), 1U);  // no pictures without the data
}

TEST(ClassificationEvaluator, LeavesOutWhatCouldNotBeRead) {
  tasks::ClassificationEvaluator evaluator;
  data::Batch batch = two_of_three();
  batch.fields["labels"] = Tensor::from<int32_t>({3}, {-1, 2, -1});
  evaluator.add(batch, said(2));
  EXPECT_EQ(evaluator.results(), (train::Numbers{{"accuracy", 1.0}, {"loss", 1.75}}));
}

TEST(ClassificationEvaluator, CountsTheFirstFive) {
  tasks::ClassificationEvaluator evaluator;
  Feeds ranked = said(0);
  ranked["rank"] = Tensor::from<int32_t>({3}, {4, 5, 0});
  evaluator.add(two_of_three(), ranked);
  EXPECT_EQ(evaluator.results().at("top5"), 0.5);
  tasks::ClassificationEvaluator merged;
  merged.merge(evaluator.state());
  EXPECT_EQ(merged.results(), evaluator.results());
}

// A network whose logits are its images' bytes, and a bias that begins as 0.
TEST(ImageClassification, RanksTheLabelAmongManyClasses) {
  const auto task_of = [](int64_t classes) {
    const auto forward = [classes](nn::Context& context, Value* images) {
      Value* bias = context.parameter("bias", {classes}, nn::zeros());
      return ops::add(ops::reshape(images, {images->shape()[0], Dimension(classes)}), bias);
    };
    return tasks::image_classification(
        {"bytes", {classes, 1, classes}, forward},
        {.images = {.mean = std::vector<float>(static_cast<size_t>(classes), 0.0F),
                    .deviation = std::vector<float>(static_cast<size_t>(classes), 1.0F)}});
  };
  EXPECT_EQ(task_of(10).metrics.size(), 2U);
  EXPECT_EQ(task_of(12).metrics[1].name, "top5");
  train::Trainer trainer(task_of(12), {.device = Device::reference()});
  Tensor images(DataType::uint8, {3, 1, 1, 12});
  for (int64_t i = 0; i < 36; ++i) images.set(i, static_cast<double>(i % 12));
  images.set(24 + 11, 0);  // two equal ones: neither is ahead of the other
  const Tensor labels = Tensor::from<int32_t>({3}, {11, 6, 0});
  const data::Rows rows({{"images", images}, {"labels", labels}}, {.batch_size = 3, .shuffle = false});
  tasks::ClassificationEvaluator evaluator;
  trainer.evaluate(rows, evaluator);
  ASSERT_EQ(evaluator.predictions().size(), 3U);
  EXPECT_EQ(evaluator.predictions()[0].rank, 0);
  EXPECT_EQ(evaluator.predictions()[1].rank, 5);
  EXPECT_EQ(evaluator.predictions()[2].rank, 10);
  EXPECT_EQ(evaluator.results().at("top5"), 1.0 / 3);
}

TEST(ClassificationEvaluator, ShowsPicturesAndNamesOfTheData) {
  tasks::ClassificationEvaluator evaluator(tasks::classified_images(tiny_dataset()));
  evaluator.add(two_of_three(), said(0));
  const auto sections = evaluator.sections();
  ASSERT_EQ(sections.size(), 2U);
  EXPECT_EQ(sections[1].title, "Worst mistakes");
  EXPECT_NE(sections[1].html.find("test image 3"), std::string::npos);
  tasks::ClassificationEvaluator right(tasks::classified_images(tiny_dataset()));
  right.add(two_of_three(), said(2));
  EXPECT_EQ(right.sections().size(), 1U);
}

// ln 4 above two others: 4 of 6 of the softmax.
Feeds logits_of_three() {
  const auto high = static_cast<float>(std::log(4));
  return {{"logits", Tensor::from<float>({3, 3}, {0, high, 0, high, 0, 0, 9, 9, 9})}};
}

TEST(ClassificationText, SaysWhatImagesWereTakenFor) {
  const auto text = tasks::classification_text({"shoe", "shirt"})();
  EXPECT_EQ(text->tell(two_of_three(), logits_of_three()),
            "image 7: shirt (66.7 %)\n\nimage 3: shoe (66.7 %), wrong: it is 2\n\n");
  EXPECT_EQ(text->summary(), "1 of 2 right\n");
  const auto named = tasks::classification_text({}, {"a.jpg", "", "", "b.jpg"})();
  EXPECT_EQ(named->tell(two_of_three(), logits_of_three()),
            "image 7: 1 (66.7 %)\n\nb.jpg: 0 (66.7 %), wrong: it is 2\n\n");
  data::Batch unlabeled = two_of_three();
  unlabeled.fields.clear();
  const auto guess = tasks::classification_text()();
  EXPECT_EQ(guess->tell(unlabeled, logits_of_three()), "image 7: 1 (66.7 %)\n\nimage 3: 0 (66.7 %)\n\n");
  EXPECT_EQ(guess->summary(), "");
}

TEST(ClassificationText, DrawsImagesOfBytes) {
  data::Batch batch = two_of_three();
  batch.samples = 1;
  // The rows of a character are one above the other, its channels side by side: all, none, and half of the
  // light.
  batch.fields["images"] =
      Tensor::from<uint8_t>({1, 2, 3, 2}, {255, 255, 0, 0, 255, 0, 255, 255, 0, 0, 255, 0});
  EXPECT_EQ(tasks::classification_text()()->tell(batch, logits_of_three()), "  @ +\nimage 7: 1 (66.7 %)\n\n");
}

// Rows that only fill a batch have neither loss nor hit, in training too.
TEST(ImageClassification, FillingRowsCountNothing) {
  const nn::Task task = tiny_perceptron();
  Graph graph;
  nn::Context context(graph, nn::Mode::training);
  const nn::Training training = task.training(context, nn::add_inputs(graph, task, {{"batch", 4}}));
  for (const nn::Measure& measure : {training.objectives[0], training.metrics[0]}) {
    graph.add_output(measure.name, measure.sum);
    graph.add_output(measure.name + "_weight", measure.weight);
  }
  const auto run = [&](const std::vector<int32_t>& labels) {
    std::vector<Tensor> inputs;
    for (const auto& input : graph.inputs()) {
      const Shape shape = input->type().static_shape();
      inputs.push_back(input->name() == "labels"
                           ? Tensor::from<int32_t>({4}, labels)
                           : Tensor::full(input->data_type(), shape, input->name() == "images" ? 90 : 0.1));
    }
    std::vector<double> values;
    for (const Tensor& output : run_reference(graph, inputs).outputs) values.push_back(output.at(0));
    return values;
  };
  const std::vector<double> all = run({0, 0, 0, 0});
  const std::vector<double> half = run({0, -1, 0, -1});
  EXPECT_EQ(all[1], 4);
  EXPECT_EQ(half[1], 2);
  EXPECT_NEAR(half[0], all[0] / 2, 1e-5);  // a sum of a few losses of about one in fp32
  EXPECT_EQ(half[3], 2);
}

// The graph of one half of such a task at four rows: training, or what is evaluated.
std::string text_of(const nn::Task& task, nn::Mode mode) {
  Graph graph("half");
  nn::Context context(graph, mode);
  const nn::Values inputs = nn::add_inputs(graph, task, {{"batch", 4}});
  if (mode == nn::Mode::training) {
    graph.add_output("loss", task.training(context, inputs).objectives[0].sum);
  } else {
    for (const auto& [name, value] : task.evaluation(context, inputs)) graph.add_output(name, value);
    for (const auto& [name, value] : task.inference(context, inputs)) graph.add_output(name, value);
  }
  return print(graph);
}

TEST(ImageClassification, AugmentsInTrainingAlone) {
  EXPECT_NE(text_of(tiny_augmented(), nn::Mode::training), text_of(tiny_perceptron(), nn::Mode::training));
  EXPECT_EQ(text_of(tiny_augmented(), nn::Mode::inference), text_of(tiny_perceptron(), nn::Mode::inference));
}

// Logits that are the mean level of the images and its opposite.
nn::Task two_levels(const nn::AugmentationOptions& augmentation) {
  const auto forward = [](nn::Context& context, Value* images) {
    Value* scale = context.parameter("scale", {2}, nn::zeros());
    Value* mean = ops::reduce_mean(ops::reshape(images, {images->shape()[0], 16}),
                                   {.axes = {1}, .keep_dimensions = true});
    return ops::multiply(mean, scale);
  };
  return tasks::image_classification({"levels", {2, 4, 1}, forward}, {.augmentation = augmentation});
}

// Black images are of class 0, white ones of class 1; the loss of a mix is that of both labels by their
// shares, and a hit is that of the larger.
TEST(ImageClassification, MixesLabelsAsItMixesImages) {
  const nn::Task task = two_levels({.mixup = 1});
  Graph graph("mixed");
  nn::Context context(graph, nn::Mode::training);
  const nn::Training training = task.training(context, nn::add_inputs(graph, task, {{"batch", 64}}));
  graph.add_output("loss", training.objectives[0].sum);
  graph.add_output("hits", training.metrics[0].sum);
  graph.add_output("images", graph.find_input("scale")->uses().front().node->input(0));
  std::vector<Tensor> inputs;
  for (const auto& input : graph.inputs()) {
    Tensor value(input->data_type(), input->type().static_shape());
    for (int64_t i = 0; input->name() == "images" && i < value.size(); ++i) value.set(i, i / 16 % 2 * 255.0);
    for (int64_t i = 0; input->name() == "labels" && i < value.size(); ++i)
      value.set(i, static_cast<double>(i % 2));
    if (input->name() == "scale") value = Tensor::from<float>({2}, {-2, 1});
    inputs.push_back(std::move(value));
  }
  const std::vector<Tensor> outputs = run_reference(graph, inputs).outputs;
  double loss = 0;
  double hits = 0;
  int between = 0;
  for (int64_t n = 0; n < 64; ++n) {
    const double white = outputs[2].at(n);  // the share of label 1
    const double gap = 3 * white;           // of the logits
    loss += std::log(1 + std::exp(gap)) - white * gap;
    if (std::abs(white - 0.5) > 1e-6) hits += white > 0.5 ? 1 : 0;
    between += white > 0.1 && white < 0.9 ? 1 : 0;
  }
  // Sixty-four numbers below 4, rounded to fp32 by each of some four nodes, and their sum below 256.
  EXPECT_NEAR(outputs[0].at(0), loss, 4 * std::sqrt(64) * 0x1p-22 + 0x1p-16);
  EXPECT_EQ(outputs[1].at(0), hits);
  EXPECT_GT(between, 16);
}

TEST(ImageClassification, RefusesToAugmentWhatIsNoBytes) {
  const models::Model network = models::mlp({.classes = 3, .image_size = 6, .channels = 1, .hidden = {4}});
  EXPECT_ERROR(tasks::image_classification(
                   network, {.images = {.type = DataType::fp32}, .augmentation = {.mixup = 1}}),
               ErrorCode::invalid_argument, "not augmented", "bytes");
  EXPECT_ERROR(tasks::image_classification(network, {.augmentation = {.hue = 0.1}}),
               ErrorCode::invalid_argument, "hue", "have 1");
}

TEST(Tasks, RegisterThemselves) {
  EXPECT_EQ(train::tasks().names(),
            (std::vector<std::string>{"bert_pretraining", "click_through", "gan", "image_classification",
                                      "language_model", "masked_language_model", "question_answering",
                                      "sound_classification", "text_classification", "text_tagging",
                                      "transformer_xl", "translation"}));
}

}  // namespace
}  // namespace tessera::testing
