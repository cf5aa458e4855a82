// Image classification as recipes ask for it: networks, data, augmentation.
#include <algorithm>
#include <filesystem>

#include <fmt/format.h>

#include "tessera/base/error.h"
#include "tessera/data/loader.h"
#include "tessera/tasks/image_classification.h"
#include "tessera/train/task_registry.h"

namespace tessera::tasks {
namespace {

std::vector<float> to_floats(const std::vector<double>& values) {
  return {values.begin(), values.end()};
}

// A data set cut to its first images, as data.train_images and data.test_images ask.
class FirstExamples : public data::Dataset {
 public:
  FirstExamples(std::shared_ptr<const data::Dataset> whole, int64_t size)
      : whole_(std::move(whole)), size_(size) {}
  int64_t size() const override { return size_; }
  const Shape& image_shape() const override { return whole_->image_shape(); }
  const std::vector<std::string>& class_names() const override { return whole_->class_names(); }
  void read(int64_t index, std::span<float> image, int32_t& label) const override {
    whole_->read(index, image, label);
  }

 private:
  std::shared_ptr<const data::Dataset> whole_;
  int64_t size_;
};

// The files of MNIST, Fashion-MNIST and others are alike, and hold no names; the labels tell them apart.
bool is_fashion_mnist(const data::ClassificationDataset& dataset, data::Split split) {
  constexpr int32_t kTrain[] = {9, 0, 0, 3, 0, 2, 7, 2, 5, 5, 0, 9, 5, 5, 7, 9, 1, 0, 6, 4, 3, 1, 4, 8};
  constexpr int32_t kTest[] = {9, 2, 1, 1, 6, 1, 4, 6, 5, 7, 4, 5, 7, 3, 4, 1, 2, 4, 8, 0, 2, 5, 7, 9};
  const bool training = split == data::Split::train;
  const std::span<const int32_t> first = training ? kTrain : kTest;
  const auto labels = dataset.labels().data<int32_t>();
  return dataset.size() == (training ? 60000 : 10000) && dataset.class_count() == 10 &&
         std::equal(first.begin(), first.end(), labels.begin());
}

models::Model make_network(const Options& settings) {
  models::ModelOptions options = models::describe(settings.text("model.name")).defaults;
  options.classes = settings.integer("model.classes");
  options.image_size = settings.integer("data.image_size");
  options.channels = settings.integer("data.channels");
  options.width = settings.get_or("model.width", options.width);
  options.blocks = settings.get_or("model.blocks", options.blocks);
  options.hidden = settings.get_or("model.hidden", options.hidden);
  options.dropout = settings.get_or("model.dropout", options.dropout);
  return models::create(settings.text("model.name"), options);
}

std::shared_ptr<const data::Dataset> read_dataset(const Options& settings, data::Split split,
                                                  const Shape& image_shape) {
  if (settings.text("data.kind") == "synthetic") {
    const char* const size = split == data::Split::train ? "data.train_images" : "data.test_images";
    return std::make_shared<data::SyntheticDataset>(
        data::SyntheticOptions{.size = settings.integer(size),
                               .image_shape = image_shape,
                               .classes = settings.integer("data.classes"),
                               .seed = static_cast<uint64_t>(settings.integer("train.seed"))});
  }
  data::ClassificationDataset loaded = data::load_idx_folder(settings.text("data.path"), {.split = split});
  if (is_fashion_mnist(loaded, split))
    loaded = {loaded.images(), loaded.labels(), data::fashion_mnist_class_names()};
  return std::make_shared<data::ClassificationDataset>(std::move(loaded));
}

std::shared_ptr<const data::Dataset> make_dataset(const Options& settings, data::Split split) {
  const int64_t size = settings.integer("data.image_size");
  const Shape wanted{size, size, settings.integer("data.channels")};
  const std::string& path = settings.text("data.path");
  const std::shared_ptr<const data::Dataset> dataset = read_dataset(settings, split, wanted);
  require(dataset->image_shape() == wanted, ErrorCode::invalid_argument,
          "the images in '{}' are {}, the recipe says {} (data.image_size, data.channels)", path,
          to_string(dataset->image_shape()), to_string(wanted));
  const int64_t classes = settings.integer("model.classes");
  require(dataset->class_count() <= classes, ErrorCode::invalid_argument,
          "the labels in '{}' are of {} classes, the network has {} (data.classes, model.classes)", path,
          dataset->class_count(), classes);
  const char* const limit = split == data::Split::train ? "data.train_images" : "data.test_images";
  const int64_t count = settings.get_or<int64_t>(limit, dataset->size());
  return count < dataset->size() ? std::make_shared<FirstExamples>(dataset, count) : dataset;
}

data::AugmentOptions make_augmentation(const Options& settings) {
  data::AugmentOptions augmentation{.crop_padding = settings.integer("data.crop_padding"),
                                    .horizontal_flip = settings.boolean("data.flip"),
                                    .mean = to_floats(settings.reals("data.mean")),
                                    .deviation = to_floats(settings.reals("data.std"))};
  if (const int64_t cutout = settings.integer("data.cutout"); cutout > 0) {
    const int64_t size = settings.integer("data.image_size");
    const auto share = static_cast<double>(cutout * cutout) / static_cast<double>(size * size);
    augmentation.erase_probability = 1;
    augmentation.erase_minimum_share = share;
    augmentation.erase_maximum_share = share;
  }
  return augmentation;
}

data::LoaderOptions make_loading(const Options& settings) {
  const int64_t prefetch = settings.integer("data.prefetch");
  return {.batch_size = settings.integer("train.batch"),
          .shuffle = settings.boolean("data.shuffle"),
          .seed = static_cast<uint64_t>(settings.integer("train.seed")),
          .workers = prefetch > 0 ? 1 : 0,  // without any batch ahead, each is made by whoever wants it
          .prefetch = std::max<int64_t>(prefetch, 1),
          .augmentation = make_augmentation(settings)};
}

train::TestSet make_test_set(const Options& settings) {
  data::LoaderOptions loading = make_loading(settings);
  loading.shuffle = false;
  loading.drop_last = false;
  loading.augmentation = loading.augmentation.without_randomness();
  const auto dataset = make_dataset(settings, data::Split::test);
  return {std::make_shared<data::Loader>(dataset, loading), classification_evaluator(dataset)};
}

train::Workload create(const Options& settings) {
  const nn::Loss loss = nn::cross_entropy({.smoothing = settings.real("train.smoothing")});
  const std::string& path = settings.text("data.path");
  return {.task = image_classification(make_network(settings), {.loss = loss}),
          .data = path.empty() ? settings.text("data.kind") : std::filesystem::path(path).filename().string(),
          .training =
              [settings] {
                return std::make_shared<data::Loader>(make_dataset(settings, data::Split::train),
                                                      make_loading(settings));
              },
          .test = [settings] { return make_test_set(settings); }};
}

void complete(Options& settings) {
  const auto fill = [&](const char* key, int64_t value) {
    if (!settings.has(key)) settings.set(key, value);
  };
  fill("model.classes", settings.integer("data.classes"));
  if (settings.text("data.kind") != "synthetic") return;
  fill("data.train_images", 10000);
  fill("data.test_images", 1000);
}

std::vector<Contradiction> check(const Options& settings) {
  std::vector<Contradiction> found;
  const auto hold = [&](bool rule, std::vector<std::string> keys, const std::string& message) {
    if (!rule) found.push_back({std::move(keys), message});
  };
  const int64_t classes = settings.integer("data.classes");
  const int64_t outputs = settings.integer("model.classes");
  const int64_t channels = settings.integer("data.channels");
  hold(!settings.text("model.name").empty(), {"model.name"}, "'model.name' is empty");
  hold(outputs >= classes, {"model.classes", "data.classes"},
       fmt::format("the network has {} outputs ('model.classes') for {} classes ('data.classes')", outputs,
                   classes));
  hold(settings.text("data.kind") != "idx" || !settings.text("data.path").empty(), {"data.kind", "data.path"},
       "'data.path', the folder of the data, is missing (as an option: --set data.path=FOLDER)");
  for (const char* key : {"data.mean", "data.std"}) {
    const auto count = static_cast<int64_t>(settings.reals(key).size());
    hold(count == channels, {key, "data.channels"},
         fmt::format("'{}' has {} values for {} channels ('data.channels')", key, count, channels));
  }
  const int64_t cutout = settings.integer("data.cutout");
  const int64_t size = settings.integer("data.image_size");
  hold(cutout <= size, {"data.cutout", "data.image_size"},
       fmt::format("'data.cutout' ({}) is larger than the image ({})", cutout, size));
  return found;
}

std::vector<Option> model_options() {
  return {
      {.key = "name",
       .value = std::string("resnet_small"),
       .documentation = "Network; `tessera models` lists them"},
      {.key = "classes",
       .value = int64_t{10},
       .documentation = "Outputs of the network; at least `data.classes`",
       .limits = Limits::between(1, 1e6),
       .unset = "`data.classes`"},
      {.key = "width",
       .value = int64_t{16},
       .documentation = "Channels of the first stage",
       .limits = Limits::between(1, 65536),
       .unset = "the model's own"},
      {.key = "blocks",
       .value = std::vector<int64_t>{},
       .documentation = "Residual blocks of each stage",
       .limits = Limits::between(1, 1000),
       .unset = "the model's own"},
      {.key = "hidden",
       .value = std::vector<int64_t>{},
       .documentation = "Units of each hidden layer of a perceptron",
       .limits = Limits::between(1, 1 << 20),
       .unset = "the model's own"},
      {.key = "dropout",
       .value = 0.0,
       .documentation = "Probability of dropping a unit, where the network has dropout",
       .limits = Limits::fraction(),
       .unset = "the model's own"},
  };
}

std::vector<Option> data_options() {
  return {
      {.key = "kind",
       .value = std::string("idx"),
       .documentation =
           "`idx`: the four files of MNIST and its successors, plain or gzip; `synthetic`: random images, "
           "for measuring speed, needs no files",
       .choices = {"idx", "synthetic"}},
      {.key = "path",
       .value = std::string(),
       .documentation = "Folder of the data",
       .used_by = {"idx"},
       .is_path = true,
       .resuming = Resuming::free},
      {.key = "image_size",
       .value = int64_t{28},
       .documentation = "Height and width of the images, in pixels",
       .limits = Limits::between(1, 16384)},
      {.key = "channels",
       .value = int64_t{1},
       .documentation = "Channels of an image",
       .limits = Limits::between(1, 64)},
      {.key = "classes",
       .value = int64_t{10},
       .documentation = "Classes of the labels",
       .limits = Limits::between(1, 1e6)},
      {.key = "train_images",
       .value = int64_t{10000},
       .documentation = "Training images: only the first so many, or how many to make up",
       .limits = Limits::between(1, 1e9),
       .unset = "all of them; `synthetic`: 10000",
       .resuming = Resuming::fixed},
      {.key = "test_images",
       .value = int64_t{1000},
       .documentation = "The same for the test images",
       .limits = Limits::between(1, 1e9),
       .unset = "all of them; `synthetic`: 1000",
       .resuming = Resuming::free},
      {.key = "shuffle",
       .value = true,
       .documentation = "Whether each epoch visits the training images in a new order",
       .resuming = Resuming::fixed},
      {.key = "flip",
       .value = false,
       .documentation = "Mirror a training image left to right with probability 1/2"},
      {.key = "crop_padding",
       .value = int64_t{0},
       .documentation =
           "Pixels of zeros around a training image before a random crop back to its size; 0: none",
       .limits = Limits::between(0, 4096)},
      {.key = "cutout",
       .value = int64_t{0},
       .documentation =
           "Pixels: an area of its square is blanked at a random place of a training image; 0: none",
       .limits = Limits::between(0, 4096)},
      {.key = "mean",
       .value = std::vector<double>{0.0},
       .documentation = "Mean of each channel, subtracted from pixels scaled to 0..1",
       .limits = Limits::between(-1e6, 1e6)},
      {.key = "std",
       .value = std::vector<double>{1.0},
       .documentation = "Standard deviation of each channel, by which they are then divided",
       .limits = {.low = 0, .high = 1e6, .low_open = true}},
      {.key = "prefetch",
       .value = int64_t{2},
       .documentation = "Batches prepared ahead of the network; 0: each when it is its turn",
       .limits = Limits::between(0, 1024),
       .resuming = Resuming::free},
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
     .sections = {{"model", model_options()}, {"data", data_options()}, {"train", train_options()}},
     .complete = complete,
     .check = check,
     .create = create});

}  // namespace
}  // namespace tessera::tasks
