#include "tasks/image_data.h"

#include <algorithm>

#include "tessera/base/error.h"

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

}  // namespace

std::shared_ptr<const data::Dataset> image_dataset(const Options& settings, data::Split split) {
  const int64_t size = settings.integer("data.image_size");
  const Shape wanted{size, size, settings.integer("data.channels")};
  const std::string& path = settings.text("data.path");
  const std::shared_ptr<const data::Dataset> dataset = read_dataset(settings, split, wanted);
  require(dataset->image_shape() == wanted, ErrorCode::invalid_argument,
          "the images in '{}' are {}, the recipe says {} (data.image_size, data.channels)", path,
          to_string(dataset->image_shape()), to_string(wanted));
  const char* const limit = split == data::Split::train ? "data.train_images" : "data.test_images";
  const int64_t count = settings.get_or<int64_t>(limit, dataset->size());
  return count < dataset->size() ? std::make_shared<FirstExamples>(dataset, count) : dataset;
}

data::LoaderOptions image_loading(const Options& settings) {
  const int64_t prefetch = settings.integer("data.prefetch");
  return {.batch_size = settings.integer("train.batch"),
          .shuffle = settings.boolean("data.shuffle"),
          .seed = static_cast<uint64_t>(settings.integer("train.seed")),
          .workers = prefetch > 0 ? 1 : 0,  // without any batch ahead, each is made by whoever wants it
          .prefetch = std::max<int64_t>(prefetch, 1),
          .augmentation = make_augmentation(settings)};
}

data::LoaderOptions without_randomness(data::LoaderOptions loading) {
  loading.shuffle = false;
  loading.drop_last = false;
  loading.augmentation = loading.augmentation.without_randomness();
  return loading;
}

void complete_image_data(Options& settings) {
  if (settings.text("data.kind") != "synthetic") return;
  for (const auto& [key, count] : {std::pair{"data.train_images", 10000}, {"data.test_images", 1000}}) {
    if (!settings.has(key)) settings.set(key, int64_t{count});
  }
}

std::vector<Contradiction> check_image_data(const Options& settings) {
  std::vector<Contradiction> found;
  const auto hold = [&](bool rule, std::vector<std::string> keys, const std::string& message) {
    if (!rule) found.push_back({std::move(keys), message});
  };
  hold(settings.text("data.kind") != "idx" || !settings.text("data.path").empty(), {"data.kind", "data.path"},
       "'data.path', the folder of the data, is missing (as an option: --set data.path=FOLDER)");
  const int64_t channels = settings.integer("data.channels");
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

std::string image_data_name(const Options& settings) {
  const std::string& path = settings.text("data.path");
  return path.empty() ? settings.text("data.kind") : std::filesystem::path(path).filename().string();
}

std::vector<Option> image_data_options() {
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

}  // namespace tessera::tasks
