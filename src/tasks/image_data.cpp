#include "tasks/image_data.h"

#include <algorithm>
#include <cmath>
#include <thread>

#include "tessera/base/error.h"
#include "tessera/data/registry.h"
#include "tessera/device/common/jpeg_decoding.h"

#include "tasks/balanced.h"
#include "tasks/data_kind.h"
#include "tasks/prefetch.h"

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
  int32_t label(int64_t index) const override { return whole_->label(index); }
  double ratio(int64_t index) const override { return whole_->ratio(index); }
  std::shared_ptr<const data::Dataset> reshaped(const Shape& image_shape) const override {
    const std::shared_ptr<const data::Dataset> whole = whole_->reshaped(image_shape);
    return whole == nullptr ? nullptr : std::make_shared<FirstExamples>(whole, size_);
  }
  void read(int64_t index, std::span<uint8_t> image, int32_t& label) const override {
    whole_->read(index, image, label);
  }
  void read_random(int64_t index, const data::RandomView& view, std::span<uint8_t> image,
                   int32_t& label) const override {
    whole_->read_random(index, view, image, label);
  }
  JpegsUnderWay decode_rows(std::span<const data::DeviceImageRow> rows, const data::RandomView* view,
                            JpegDecoding& decoding) const override {
    return whole_->decode_rows(rows, view, decoding);
  }
  std::vector<std::string> remarks() const override { return whole_->remarks(); }

 private:
  std::shared_ptr<const data::Dataset> whole_;
  int64_t size_;
};

const data::ImageSetDescription& kind_of(const Options& settings) {
  return data::image_sets().get(settings.text("data.kind"));
}

data::AugmentOptions make_augmentation(const Options& settings) {
  data::AugmentOptions augmentation{
      .crop_padding = settings.integer("data.crop_padding"),
      .horizontal_flip = settings.boolean("data.flip") && !kind_of(settings).decodes};
  if (const int64_t cutout = settings.integer("data.cutout"); cutout > 0) {
    const int64_t size = settings.integer("data.image_size");
    const auto share = static_cast<double>(cutout * cutout) / static_cast<double>(size * size);
    augmentation.erase_probability = 1;
    augmentation.erase_minimum_share = share;
    augmentation.erase_maximum_share = share;
    augmentation.erase_fill.clear();
    for (const double mean : settings.reals("data.mean"))
      augmentation.erase_fill.push_back(static_cast<uint8_t>(std::lround(255 * std::clamp(mean, 0.0, 1.0))));
  }
  return augmentation;
}

data::DecodePlace decode_place(const Options& settings) {
  return data::decode_place_of(settings.get_or<std::string>("data.decode", "cpu"));
}

// Threads that make batches: of kinds that only copy, one is enough.
int64_t image_workers(const Options& settings) {
  const int64_t cores = std::clamp<int64_t>(std::thread::hardware_concurrency(), 1, 64);
  return settings.get_or<int64_t>("data.workers", kind_of(settings).decodes ? cores : 1);
}

data::BatchOptions batching_of(const Options& settings) {
  const Prefetch prefetch = prefetch_of(settings);
  return {.batch_size = settings.integer("train.batch"),
          .shuffle = settings.boolean("data.shuffle"),
          .balanced = settings.boolean("data.balanced"),
          .seed = static_cast<uint64_t>(settings.integer("train.seed")),
          .workers = prefetch.workers == 0 ? 0 : image_workers(settings),
          .prefetch = prefetch.batches};
}

int64_t test_size(const Options& settings) {
  return settings.get_or<int64_t>("data.test_size", settings.integer("data.image_size"));
}

bool are_rectangular(const Options& settings) {
  return settings.get_or<bool>("data.rectangular", false);
}

Shape square(const Options& settings, data::Split split) {
  const int64_t size =
      split == data::Split::train ? settings.integer("data.image_size") : test_size(settings);
  return {size, size, settings.integer("data.channels")};
}

data::ImageSetRequest image_request(const Options& settings, data::Split split) {
  return {.split = split,
          .image_shape = square(settings, split),
          .classes = settings.integer("data.classes"),
          .seed = static_cast<uint64_t>(settings.integer("train.seed")),
          .mirror = settings.boolean("data.flip")};
}

}  // namespace

bool has_open_size(const Options& settings) {
  return are_rectangular(settings) || test_size(settings) != settings.integer("data.image_size");
}

std::shared_ptr<const data::Dataset> image_dataset(const Options& settings, data::Split split) {
  const data::ImageSetRequest request = image_request(settings, split);
  const std::shared_ptr<const data::Dataset> dataset =
      kind_of(settings).open(settings.section("data"), request);
  require(dataset->image_shape() == request.image_shape, ErrorCode::invalid_argument,
          "the images in '{}' are {}, the recipe says {} (data.image_size, data.channels)",
          settings.text("data.path"), to_string(dataset->image_shape()), to_string(request.image_shape));
  const char* const limit = split == data::Split::train ? "data.train_images" : "data.test_images";
  const int64_t count = settings.get_or<int64_t>(limit, dataset->size());
  return count < dataset->size() ? std::make_shared<FirstExamples>(dataset, count) : dataset;
}

std::shared_ptr<const data::Dataset> named_images(const Options& settings,
                                                  const std::vector<std::string>& files) {
  const data::ImageSetDescription& kind = kind_of(settings);
  require(kind.open_files != nullptr, ErrorCode::invalid_argument,
          "images of the kind '{}' are no files of their own; a network trained on files takes them "
          "(data.kind = \"image_folder\")",
          kind.name);
  return kind.open_files(settings.section("data"), image_request(settings, data::Split::test), files);
}

nn::ImageInput image_input(const Options& settings) {
  return {.mean = to_floats(settings.reals("data.mean")), .deviation = to_floats(settings.reals("data.std"))};
}

std::shared_ptr<const data::Source> training_images(std::shared_ptr<const data::Dataset> images,
                                                    const Options& settings) {
  const data::ImageExampleOptions options{.random_views = kind_of(settings).decodes,
                                          .decode = decode_place(settings),
                                          .augmentation = make_augmentation(settings)};
  if (!has_open_size(settings))
    return std::make_shared<data::Loader>(std::move(images), batching_of(settings), options);
  return std::make_shared<data::Loader>(data::ShapedImages{.shapes = {std::move(images)}},
                                        batching_of(settings), options);
}

std::shared_ptr<const data::Source> images_in_order(std::shared_ptr<const data::Dataset> images,
                                                    const Options& settings) {
  data::BatchOptions in_order = batching_of(settings);
  in_order.shuffle = false;
  in_order.balanced = false;
  in_order.drop_last = false;
  const data::ImageExampleOptions options{.decode = decode_place(settings)};
  if (!has_open_size(settings)) return std::make_shared<data::Loader>(std::move(images), in_order, options);
  data::ShapedImages shaped{.shapes = {images}};
  if (are_rectangular(settings)) {
    std::vector<std::shared_ptr<const data::Dataset>> shapes;
    for (const Shape& shape :
         data::common_image_shapes(test_size(settings), settings.integer("data.channels")))
      shapes.push_back(shape == images->image_shape() ? images : images->reshaped(shape));
    shaped = data::shaped_images(std::move(shapes));
  }
  return std::make_shared<data::Loader>(std::move(shaped), in_order, options);
}

std::vector<Contradiction> check_image_data(const Options& settings) {
  std::vector<Contradiction> found = check_kind(kind_of(settings), settings);
  check_balanced(settings, found);
  const auto hold = [&](bool rule, std::vector<std::string> keys, const std::string& message) {
    if (!rule) found.push_back({std::move(keys), message});
  };
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

train::OptionSection image_data_options() {
  std::vector<Option> options{
      {.key = "kind", .value = std::string("idx"), .documentation = "Where the images come from"},
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
      {.key = "shuffle",
       .value = true,
       .documentation = "Whether each epoch visits the training images in a new order",
       .resuming = Resuming::fixed},
      balanced_option("images"),
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
           "Pixels: an area of its square is set to the mean at a random place of a training image; 0: none",
       .limits = Limits::between(0, 4096)},
      {.key = "mean",
       .value = std::vector<double>{0.0},
       .documentation = "Mean of each channel, subtracted from pixels scaled to 0..1",
       .limits = Limits::between(-1e6, 1e6)},
      {.key = "std",
       .value = std::vector<double>{1.0},
       .documentation = "Standard deviation of each channel, by which they are then divided",
       .limits = {.low = 0, .high = 1e6, .low_open = true}},
      prefetch_option(),
      {.key = "workers",
       .value = int64_t{1},
       .documentation = "Threads that prepare batches, where any are prepared ahead; they change no bit",
       .limits = Limits::between(1, 256),
       .unset = "1; of kinds that decode, as many as the machine has cores, up to 64",
       .resuming = Resuming::free},
  };
  return {"data", std::move(options), [] { return choices_of(data::image_sets()); }};
}

}  // namespace tessera::tasks
