// Image classification as recipes ask for it: networks and data.
#include <algorithm>

#include <fmt/format.h>

#include "tessera/base/error.h"
#include "tessera/data/loader.h"
#include "tessera/models/network_file.h"
#include "tessera/models/registry.h"
#include "tessera/tasks/image_classification.h"
#include "tessera/train/task_registry.h"

#include "tasks/data_kind.h"
#include "tasks/image_data.h"

namespace tessera::tasks {
namespace {

constexpr const char* kInFile = "file";

models::Model make_network(const Options& settings) {
  const models::ClassifierOptions options{.classes = settings.integer("model.classes"),
                                          .image_size = settings.integer("data.image_size"),
                                          .channels = settings.integer("data.channels")};
  const std::string& name = settings.text("model.name");
  if (name == kInFile) return models::read_network(settings.text("model.file"), options);
  return models::create(name, options, settings.section("model"));
}

// Whether the network's parameters are the same for larger images.
bool takes_any_size(const Options& settings) {
  if (settings.text("model.name") == kInFile) return false;
  Options larger = settings;
  larger.set("data.image_size", 2 * settings.integer("data.image_size"));
  const std::vector<nn::Variable> own = models::build(make_network(settings), 1).variables;
  const std::vector<nn::Variable> others = models::build(make_network(larger), 1).variables;
  return std::ranges::equal(own, others, [](const nn::Variable& a, const nn::Variable& b) {
    return a.name == b.name && a.shape == b.shape;
  });
}

std::vector<OptionChoice> network_choices() {
  static const std::vector<Option> kFile{
      {.key = "file",
       .value = std::string(),
       .documentation = "The network's file, `NAME.onnx`; its initializers in fp32 are what is trained",
       .is_path = true}};
  std::vector<OptionChoice> choices = choices_of(models::networks());
  choices.push_back({kInFile, "a network in a file, with the weights that it has there", &kFile});
  return choices;
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
  return {images_in_order(dataset, settings), classification_evaluator(classified_images(dataset))};
}

train::PredictionSet make_predictions(const Options& settings) {
  const auto dataset = labeled_dataset(settings, data::Split::test);
  return {images_in_order(dataset, settings), classification_text(dataset->class_names())};
}

train::PredictionSet predict_files(const Options& settings, const std::vector<std::string>& files) {
  const std::vector<std::string> classes = labeled_dataset(settings, data::Split::test)->class_names();
  return {images_in_order(named_images(settings, files), settings), classification_text(classes, files)};
}

nn::AugmentationOptions augmentation_of(const Options& settings) {
  const auto number = [&](const char* key) { return settings.real(std::string("augment.") + key); };
  const std::vector<double> shares = settings.reals("augment.erasing_share");
  const bool is_nearest = settings.text("augment.affine_filter") == "nearest";
  nn::AugmentationOptions options{
      .affine = {.degrees = number("rotation"),
                 .translation = number("translation"),
                 .scale = number("scale"),
                 .shear = number("shear"),
                 .probability = number("affine_probability"),
                 .filter = is_nearest ? nn::WarpFilter::nearest : nn::WarpFilter::bilinear},
      .rand_augment = {.operations = settings.integer("augment.randaugment"),
                       .magnitude = settings.integer("augment.randaugment_magnitude")},
      .brightness = number("brightness"),
      .contrast = number("contrast"),
      .saturation = number("saturation"),
      .hue = number("hue"),
      .color_probability = number("color_probability"),
      .grayscale = number("grayscale"),
      .erasing = number("erasing"),
      .erasing_minimum_share = shares.at(0),
      .erasing_maximum_share = shares.at(1),
      .erasing_fill = {},
      .mixup = number("mixup"),
      .cutmix = number("cutmix"),
      .mix_probability = number("mix_probability")};
  for (const double mean : settings.reals("data.mean"))
    options.erasing_fill.push_back(static_cast<float>(255 * mean));
  return options;
}

train::Workload create(const Options& settings) {
  const nn::Loss loss = nn::cross_entropy({.smoothing = settings.real("train.smoothing")});
  return {.task = image_classification(make_network(settings), {.loss = loss,
                                                                .images = image_input(settings),
                                                                .augmentation = augmentation_of(settings),
                                                                .open_size = has_open_size(settings)}),
          .data = data_name(settings),
          .training =
              [settings] { return training_images(labeled_dataset(settings, data::Split::train), settings); },
          .test = [settings] { return make_test_set(settings); },
          .predictions = [settings] { return make_predictions(settings); },
          .file_predictions =
              [settings](const std::vector<std::string>& files) { return predict_files(settings, files); },
          .output_names = [settings] { return labeled_dataset(settings, data::Split::test)->class_names(); }};
}

void complete(Options& settings) {
  if (!settings.has("model.classes")) settings.set("model.classes", settings.integer("data.classes"));
}

std::vector<Contradiction> check(const Options& settings) {
  std::vector<Contradiction> found = check_image_data(settings);
  if (settings.text("model.name") == kInFile && settings.text("model.file").empty())
    found.push_back({{"model.file"}, "'model.file' is missing, which a network in a file is read from"});
  if (has_open_size(settings) && !takes_any_size(settings)) {
    found.push_back(
        {{"model.name", "data.test_size", "data.rectangular"},
         fmt::format("the weights of '{}' are for images of one size: none of 'data.test_size' and "
                     "'data.rectangular' can be said",
                     settings.text("model.name"))});
  }
  const int64_t classes = settings.integer("data.classes");
  const int64_t outputs = settings.integer("model.classes");
  if (outputs < classes) {
    found.push_back(
        {{"model.classes", "data.classes"},
         fmt::format("the network has {} outputs ('model.classes') for {} classes ('data.classes')", outputs,
                     classes)});
  }
  for (const char* key : {"augment.saturation", "augment.hue", "augment.grayscale"}) {
    if (settings.real(key) == 0 || settings.integer("data.channels") == 3) continue;
    found.push_back({{key, "data.channels"},
                     fmt::format("'{}' is of images with 3 channels, these have {} ('data.channels')", key,
                                 settings.integer("data.channels"))});
  }
  const std::vector<double> shares = settings.reals("augment.erasing_share");
  if (shares.size() != 2 || shares[0] > shares[1])
    found.push_back({{"augment.erasing_share"},
                     "'augment.erasing_share' takes the smallest and the largest share of the area"});
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

Option strength(const char* key, const char* documentation, double most) {
  return {.key = key, .value = 0.0, .documentation = documentation, .limits = Limits::between(0, most)};
}

Option probability(const char* key, const char* documentation, double usual = 0) {
  return {.key = key, .value = usual, .documentation = documentation, .limits = Limits::between(0, 1)};
}

std::vector<Option> augmentation_options() {
  return {
      strength("rotation", "Turn an image around its middle by up to so many degrees, either way", 180),
      strength("translation", "Move it by up to this part of each side, either way", 1),
      strength("scale", "Enlarge it by a factor between 1 - x and 1 + x", 0.9),
      strength("shear", "Shear it by up to so many degrees, either way", 45),
      probability("affine_probability", "Of these four together, for an image", 1),
      {.key = "affine_filter",
       .value = std::string("bilinear"),
       .documentation = "How they make a pixel of those around the place that it comes from",
       .choices = {"nearest", "bilinear"}},
      {.key = "randaugment",
       .value = int64_t{0},
       .documentation = "RandAugment: so many random operations on an image, one after the other; 0: none",
       .limits = Limits::between(0, 10)},
      {.key = "randaugment_magnitude",
       .value = int64_t{9},
       .documentation = "How strong they are",
       .limits = Limits::between(0, 30)},
      strength("brightness", "Multiply by a number between 1 - x and 1 + x, at least 0; 0: leave as it is",
               10),
      strength("contrast", "The same of the distance from the gray of the image's mean", 10),
      strength("saturation", "The same of the distance from the gray of the pixel; of 3 channels", 10),
      strength("hue", "Turn the hue by up to this part of a whole turn, either way; of 3 channels", 0.5),
      probability("color_probability", "Of these four together, for an image", 1),
      probability("grayscale", "Probability that an image becomes gray; of 3 channels"),
      probability("erasing", "Probability that a random rectangle of an image is set to the mean"),
      {.key = "erasing_share",
       .value = std::vector<double>{0.02, 1.0 / 3},
       .documentation = "Of the image's area, that rectangle's smallest and largest",
       .limits = {.low = 0, .high = 1, .low_open = true}},
      strength("mixup", "Add two images and their labels, with shares of Beta(x, x); 0: none", 10),
      strength("cutmix",
               "Put a rectangle of another image in, the share that stays being of Beta(x, x); 0: none", 10),
      probability("mix_probability", "Of one of these two, for an image; both are then as likely", 1),
  };
}

const train::TaskRegistration kRegistration(
    {.name = "image_classification",
     .documentation = "One class for each image; test images are measured at the end of an epoch.",
     .sections = {{"model", model_options(), network_choices},
                  image_data_options(),
                  {"augment", augmentation_options()},
                  {"train", train_options()}},
     .complete = complete,
     .check = check,
     .create = create,
     .is_default = true});

}  // namespace
}  // namespace tessera::tasks
