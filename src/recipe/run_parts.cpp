// From a recipe's words to the objects of the library.
#include <algorithm>

#include "tessera/base/error.h"
#include "tessera/data/loader.h"
#include "tessera/recipe/run.h"
#include "tessera/tasks/image_classification.h"

namespace tessera::recipe {
namespace {

std::vector<float> to_floats(const std::vector<double>& values) {
  return {values.begin(), values.end()};
}

// A data set cut to its first images, as the recipe's data.train_images and data.test_images ask.
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

optim::Optimizer make_optimizer(const Recipe::Optimizer& o) {
  if (o.name == "adam" || o.name == "adamw") {
    const optim::AdamOptions options{o.learning_rate, o.beta1, o.beta2, o.epsilon, o.weight_decay};
    return o.name == "adam" ? optim::adam(options) : optim::adamw(options);
  }
  if (o.name == "lamb") return optim::lamb({o.learning_rate, o.beta1, o.beta2, o.epsilon, o.weight_decay});
  if (o.name == "lars") return optim::lars({o.learning_rate, o.momentum, o.weight_decay, o.trust, o.epsilon});
  if (o.name == "rmsprop")
    return optim::rmsprop({o.learning_rate, o.alpha, o.epsilon, o.momentum, o.weight_decay});
  require(o.name == "sgd", ErrorCode::invalid_argument, "there is no optimizer '{}'", o.name);
  return optim::sgd({o.learning_rate, o.momentum, o.nesterov, o.weight_decay});
}

// The processor is opened anew with the threads asked for, be it named or the fastest present.
std::shared_ptr<Device> open_device(const Recipe::Train& train, std::string* fallback) {
  std::shared_ptr<Device> device = Device::open(train.device, fallback);
  const bool chooses = train.threads > 0 && device->description().name == "cpu";
  return chooses ? Device::open(fmt::format("cpu:threads={}", train.threads)) : device;
}

models::Model make_network(const Recipe& recipe) {
  models::ModelOptions options = models::describe(recipe.model.name).defaults;
  options.classes = recipe.model.classes.value_or(recipe.data.classes);
  options.image_size = recipe.data.image_size;
  options.channels = recipe.data.channels;
  if (recipe.model.width.has_value()) options.width = *recipe.model.width;
  if (!recipe.model.blocks.empty()) options.blocks = recipe.model.blocks;
  if (!recipe.model.hidden.empty()) options.hidden = recipe.model.hidden;
  if (recipe.model.dropout.has_value()) options.dropout = *recipe.model.dropout;
  return models::create(recipe.model.name, options);
}

std::shared_ptr<const data::Dataset> make_dataset(const Recipe& recipe, data::Split split) {
  const std::optional<int64_t> limit =
      split == data::Split::train ? recipe.data.train_images : recipe.data.test_images;
  std::shared_ptr<const data::Dataset> dataset;
  if (recipe.data.kind == "synthetic") {
    const int64_t size = limit.value_or(10 * recipe.train.batch);
    dataset = std::make_shared<data::SyntheticDataset>(data::SyntheticOptions{
        .size = size,
        .image_shape = {recipe.data.image_size, recipe.data.image_size, recipe.data.channels},
        .classes = recipe.data.classes,
        .seed = static_cast<uint64_t>(recipe.train.seed)});
  } else {
    data::ClassificationDataset loaded = data::load_idx_folder(recipe.data.path, {.split = split});
    if (is_fashion_mnist(loaded, split))
      loaded = {loaded.images(), loaded.labels(), data::fashion_mnist_class_names()};
    dataset = std::make_shared<data::ClassificationDataset>(std::move(loaded));
  }
  const Shape wanted{recipe.data.image_size, recipe.data.image_size, recipe.data.channels};
  require(dataset->image_shape() == wanted, ErrorCode::invalid_argument,
          "the images in '{}' are {}, the recipe says {} (data.image_size, data.channels)", recipe.data.path,
          to_string(dataset->image_shape()), to_string(wanted));
  const int64_t classes = recipe.model.classes.value_or(recipe.data.classes);
  require(dataset->class_count() <= classes, ErrorCode::invalid_argument,
          "the labels in '{}' are of {} classes, the network has {} (data.classes, model.classes)",
          recipe.data.path, dataset->class_count(), classes);
  if (limit.has_value() && *limit < dataset->size())
    dataset = std::make_shared<FirstExamples>(dataset, *limit);
  return dataset;
}

data::AugmentOptions make_augmentation(const Recipe::Data& data) {
  data::AugmentOptions augmentation{.crop_padding = data.crop_padding,
                                    .horizontal_flip = data.flip,
                                    .mean = to_floats(data.mean),
                                    .deviation = to_floats(data.std)};
  if (data.cutout > 0) {
    const auto share = static_cast<double>(data.cutout * data.cutout) /
                       static_cast<double>(data.image_size * data.image_size);
    augmentation.erase_probability = 1;
    augmentation.erase_minimum_share = share;
    augmentation.erase_maximum_share = share;
  }
  return augmentation;
}

data::LoaderOptions make_loading(const Recipe& recipe) {
  return {.batch_size = recipe.train.batch,
          .shuffle = recipe.data.shuffle,
          .seed = static_cast<uint64_t>(recipe.train.seed),
          .workers =
              recipe.data.prefetch > 0 ? 1 : 0,  // without any batch ahead, each is made by whoever wants it
          .prefetch = std::max<int64_t>(recipe.data.prefetch, 1),
          .augmentation = make_augmentation(recipe.data)};
}

std::shared_ptr<const data::Source> training_source(const Recipe& recipe) {
  return std::make_shared<data::Loader>(make_dataset(recipe, data::Split::train), make_loading(recipe));
}

train::TestSet test_set(const Recipe& recipe) {
  data::LoaderOptions loading = make_loading(recipe);
  loading.shuffle = false;
  loading.drop_last = false;
  loading.augmentation = loading.augmentation.without_randomness();
  const auto dataset = make_dataset(recipe, data::Split::test);
  return {std::make_shared<data::Loader>(dataset, loading), tasks::classification_evaluator(dataset)};
}

}  // namespace

train::Workload make_workload(const Recipe& recipe) {
  const nn::Loss loss = nn::cross_entropy({.smoothing = recipe.train.smoothing});
  return {.task = tasks::image_classification(make_network(recipe), {.loss = loss}),
          .data = recipe.data.path.empty() ? recipe.data.kind
                                           : std::filesystem::path(recipe.data.path).filename().string(),
          .training = [recipe] { return training_source(recipe); },
          .test = [recipe] { return test_set(recipe); }};
}

train::TrainerOptions make_trainer_options(const Recipe& recipe, std::string* fallback) {
  std::optional<Precision> precision;
  if (recipe.train.precision != "auto") precision = parse_precision(recipe.train.precision);
  return {.optimizer = make_optimizer(recipe.optimizer),
          .precision = precision,
          .device = open_device(recipe.train, fallback),
          .seed = static_cast<uint64_t>(recipe.train.seed),
          .accumulate = recipe.train.accumulate,
          .clip_norm = recipe.train.clip_norm,
          .ema_decay = recipe.train.ema_decay,
          .decay_all = recipe.optimizer.decay_all,
          .deterministic = recipe.train.deterministic,
          .recompute = recipe.train.recompute};
}

}  // namespace tessera::recipe
