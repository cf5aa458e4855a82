// Image classification as recipes ask for it: networks and data.
#include <fmt/format.h>

#include "tessera/base/error.h"
#include "tessera/data/loader.h"
#include "tessera/models/registry.h"
#include "tessera/tasks/image_classification.h"
#include "tessera/train/task_registry.h"

#include "tasks/image_data.h"

namespace tessera::tasks {
namespace {

models::Model make_network(const Options& settings) {
  return models::create(settings.text("model.name"),
                        {.classes = settings.integer("model.classes"),
                         .image_size = settings.integer("data.image_size"),
                         .channels = settings.integer("data.channels")},
                        settings.section("model"));
}

std::shared_ptr<const data::Dataset> labeled_dataset(const Options& settings, data::Split split) {
  auto dataset = image_dataset(settings, split);
  const int64_t classes = settings.integer("model.classes");
  require(dataset->class_count() <= classes, ErrorCode::invalid_argument,
          "the labels in '{}' are of {} classes, the network has {} (data.classes, model.classes)",
          settings.text("data.path"), dataset->class_count(), classes);
  return dataset;
}

train::TestSet make_test_set(const Options& settings) {
  const auto dataset = labeled_dataset(settings, data::Split::test);
  return {std::make_shared<data::Loader>(dataset, without_randomness(image_loading(settings))),
          classification_evaluator(dataset)};
}

train::PredictionSet make_predictions(const Options& settings) {
  const auto dataset = labeled_dataset(settings, data::Split::test);
  return {std::make_shared<data::Loader>(dataset, without_randomness(image_loading(settings))),
          classification_text(dataset->class_names())};
}

train::PredictionSet predict_files(const Options& settings, const std::vector<std::string>& files) {
  const std::vector<std::string> classes = labeled_dataset(settings, data::Split::test)->class_names();
  data::LoaderOptions loading = without_randomness(image_loading(settings));
  return {std::make_shared<data::Loader>(named_images(settings, files), loading),
          classification_text(classes, files)};
}

train::Workload create(const Options& settings) {
  const nn::Loss loss = nn::cross_entropy({.smoothing = settings.real("train.smoothing")});
  return {
      .task = image_classification(make_network(settings), {.loss = loss, .images = image_input(settings)}),
      .data = image_data_name(settings),
      .training =
          [settings] {
            return std::make_shared<data::Loader>(labeled_dataset(settings, data::Split::train),
                                                  image_loading(settings));
          },
      .test = [settings] { return make_test_set(settings); },
      .predictions = [settings] { return make_predictions(settings); },
      .file_predictions =
          [settings](const std::vector<std::string>& files) { return predict_files(settings, files); },
      .class_names = [settings] { return labeled_dataset(settings, data::Split::test)->class_names(); }};
}

void complete(Options& settings) {
  if (!settings.has("model.classes")) settings.set("model.classes", settings.integer("data.classes"));
}

std::vector<Contradiction> check(const Options& settings) {
  std::vector<Contradiction> found = check_image_data(settings);
  const int64_t classes = settings.integer("data.classes");
  const int64_t outputs = settings.integer("model.classes");
  if (outputs < classes) {
    found.push_back(
        {{"model.classes", "data.classes"},
         fmt::format("the network has {} outputs ('model.classes') for {} classes ('data.classes')", outputs,
                     classes)});
  }
  return found;
}

std::vector<Option> model_options() {
  return {
      {.key = "name", .value = std::string("resnet_small"), .documentation = "The network"},
      {.key = "classes",
       .value = int64_t{10},
       .documentation = "Outputs of the network; at least `data.classes`",
       .limits = Limits::between(1, 1e6),
       .unset = "`data.classes`"},
  };
}

std::vector<Option> train_options() {
  return {
      {.key = "smoothing",
       .value = 0.0,
       .documentation = "Label smoothing of the cross-entropy",
       .limits = Limits::fraction()},
  };
}

const train::TaskRegistration kRegistration(
    {.name = "image_classification",
     .documentation = "One class for each image; test images are measured at the end of an epoch.",
     .sections = {{"model", model_options(), [] { return choices_of(models::networks()); }},
                  image_data_options(),
                  {"train", train_options()}},
     .complete = complete,
     .check = check,
     .create = create});

}  // namespace
}  // namespace tessera::tasks
