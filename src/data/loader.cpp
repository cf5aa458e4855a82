#include "tessera/data/loader.h"

#include <algorithm>
#include <utility>

#include "tessera/base/error.h"

#include "data/batches.h"
#include "data/prefetch.h"

namespace tessera::data {
namespace {

// The batches of one epoch.
class Images {
 public:
  Images(std::shared_ptr<const Dataset> dataset, const LoaderOptions& options, Augmenter augmenter,
         std::shared_ptr<const BatchMemory> memory, int64_t epoch, const Partition& partition)
      : dataset_(std::move(dataset)),
        options_(options),
        augmenter_(std::move(augmenter)),
        memory_(std::move(memory)),
        epoch_(epoch),
        partition_(partition),
        order_(epoch_order(dataset_->size(), options.shuffle, options.seed, epoch)) {}

  Batch make(int64_t number) const {
    const Shape& image = dataset_->image_shape();
    const auto image_bytes = static_cast<size_t>(element_count(image));
    const int64_t size = options_.batch_size;
    Batch batch = batch_without_fields(order_, size, epoch_, number, partition_);
    Tensor images = batch_tensor(memory_.get(), DataType::uint8, {size, image[0], image[1], image[2]});
    Tensor labels = batch_tensor(memory_.get(), DataType::int32, {size});
    const std::span<uint8_t> pixels = images.data<uint8_t>();
    std::ranges::fill(pixels.subspan(batch.indices.size() * image_bytes), uint8_t{0});
    std::ranges::fill(labels.data<int32_t>(), options_.padding_label);
    for (size_t row = 0; row < batch.indices.size(); ++row) {
      const std::span<uint8_t> target = pixels.subspan(row * image_bytes, image_bytes);
      read(batch.indices[row], target, labels.data<int32_t>()[row]);
    }
    batch.fields = {{"images", std::move(images)}, {"labels", std::move(labels)}};
    return batch;
  }

 private:
  void read(int64_t example, std::span<uint8_t> image, int32_t& label) const {
    const RandomView view{.seed = options_.seed, .epoch = static_cast<uint64_t>(epoch_)};
    if (options_.random_views) {
      dataset_->read_random(example, view, image, label);
    } else {
      dataset_->read(example, image, label);
    }
    if (label < 0) label = options_.padding_label;
    augmenter_.apply(image, view.seed, view.epoch, example);
  }

  const std::shared_ptr<const Dataset> dataset_;
  const LoaderOptions options_;
  const Augmenter augmenter_;
  const std::shared_ptr<const BatchMemory> memory_;  // null: any
  const int64_t epoch_;
  const Partition partition_;
  const std::vector<int64_t> order_;
};

}  // namespace

Loader::Loader(std::shared_ptr<const Dataset> dataset, const LoaderOptions& options)
    : dataset_(std::move(dataset)),
      options_(options),
      augmenter_(options.augmentation, dataset_ != nullptr ? dataset_->image_shape() : Shape{1, 1, 1}) {
  const auto code = ErrorCode::invalid_argument;
  require(dataset_ != nullptr, code, "a loader needs a data set");
  require(options_.batch_size > 0, code, "batch_size is {}, it must be positive", options_.batch_size);
  check_prefetch(options_.workers, options_.prefetch);
  require(*batches(0) > 0, code,
          "{} examples do not fill one batch of {}; lower batch_size or set drop_last to false",
          dataset_->size(), options_.batch_size);
}

std::vector<Field> Loader::fields() const {
  const Dimension batch = Dimension::symbol(kBatch);
  const Shape& image = dataset_->image_shape();
  return {{"images", {DataType::uint8, {batch, image[0], image[1], image[2]}}},
          {"labels", {DataType::int32, {batch}}}};
}

std::vector<SymbolBindings> Loader::sizes() const {
  return {{{kBatch, options_.batch_size}}};
}

std::optional<int64_t> Loader::batches(int64_t /*epoch*/, int64_t ranks) const {
  return batches_of(dataset_->size(), options_.batch_size * ranks, options_.drop_last);
}

std::unique_ptr<Stream> Loader::open(const Cursor& from, const Partition& partition) const {
  return open_into(nullptr, from, partition);
}

std::unique_ptr<Stream> Loader::open_into(std::shared_ptr<const BatchMemory> memory, const Cursor& from,
                                          const Partition& partition) const {
  const int64_t count = batches_from(*this, from, partition);
  auto images = std::make_shared<const Images>(dataset_, options_, augmenter_, std::move(memory), from.epoch,
                                               partition);
  return prefetched([images = std::move(images)](int64_t number) { return images->make(number); }, from.batch,
                    count, options_.workers, options_.prefetch);
}

}  // namespace tessera::data
