#include "tessera/data/loader.h"

#include <algorithm>
#include <condition_variable>
#include <exception>
#include <mutex>
#include <system_error>
#include <thread>
#include <utility>

#include "tessera/base/error.h"

#include "data/batches.h"

namespace tessera::data {

namespace {

// Workers take batch numbers in turn and put what they made into a ring of `depth` slots; the consumer takes
// the slots in order. A worker waits while its number is `depth` or more ahead of the consumer, so every slot
// has one owner at a time.
class Pipeline : public Stream {
 public:
  Pipeline(std::shared_ptr<const Dataset> dataset, const LoaderOptions& options, Augmenter augmenter,
           std::shared_ptr<const BatchMemory> memory, const Cursor& from, const Partition& partition,
           int64_t batches)
      : dataset_(std::move(dataset)),
        options_(options),
        augmenter_(std::move(augmenter)),
        memory_(std::move(memory)),
        epoch_(from.epoch),
        partition_(partition),
        order_(epoch_order(dataset_->size(), options.shuffle, options.seed, from.epoch)),
        batches_(batches),
        slots_(static_cast<size_t>(std::max(options.prefetch, options.workers))),
        next_made_(from.batch),
        next_taken_(from.batch) {}
  Pipeline(const Pipeline&) = delete;
  Pipeline& operator=(const Pipeline&) = delete;

  ~Pipeline() override {
    {
      const std::lock_guard lock(mutex_);
      stopping_ = true;
    }
    slot_freed_.notify_all();
    for (std::thread& thread : threads_) thread.join();
  }

  void start() {
    const int64_t wanted = std::min(options_.workers, batches_ - next_taken_);
    try {
      for (int64_t i = 0; i < wanted; ++i) threads_.emplace_back([this] { work(); });
    } catch (const std::system_error& error) {
      fail(ErrorCode::out_of_memory, "cannot start loader thread {} of {}: {}", threads_.size() + 1, wanted,
           error.what());
    }
  }

  std::optional<Batch> next() override {
    if (failure_ != nullptr) std::rethrow_exception(failure_);
    if (next_taken_ == batches_) return std::nullopt;
    Slot slot = options_.workers == 0 ? make(next_taken_++) : take();
    failure_ = std::move(slot.failure);
    if (failure_ != nullptr) std::rethrow_exception(failure_);
    return std::move(slot.batch);
  }

 private:
  struct Slot {
    std::optional<Batch> batch;
    std::exception_ptr failure;
    bool full() const { return batch.has_value() || failure != nullptr; }
  };

  Slot& slot_of(int64_t number) { return slots_[static_cast<size_t>(number) % slots_.size()]; }

  Slot take() {
    std::unique_lock lock(mutex_);
    Slot& slot = slot_of(next_taken_);
    slot_filled_.wait(lock, [&] { return slot.full(); });
    ++next_taken_;
    Slot taken = std::exchange(slot, {});
    lock.unlock();
    slot_freed_.notify_all();
    return taken;
  }

  void work() {
    std::unique_lock lock(mutex_);
    while (true) {
      const auto depth = static_cast<int64_t>(slots_.size());
      slot_freed_.wait(
          lock, [&] { return stopping_ || next_made_ >= batches_ || next_made_ < next_taken_ + depth; });
      if (stopping_ || next_made_ >= batches_) return;
      const int64_t number = next_made_++;
      lock.unlock();
      Slot made = make(number);
      lock.lock();
      if (made.failure != nullptr) next_made_ = batches_;  // nothing after it will be asked for
      slot_of(number) = std::move(made);
      slot_filled_.notify_one();
    }
  }

  Slot make(int64_t number) const {
    Slot slot;
    try {
      slot.batch = make_batch(number);
    } catch (...) {
      slot.failure = std::current_exception();
    }
    return slot;
  }

  Batch make_batch(int64_t number) const {
    const Shape& image = dataset_->image_shape();
    const auto image_values = static_cast<size_t>(element_count(image));
    const int64_t size = options_.batch_size;
    Batch batch = batch_without_fields(order_, size, epoch_, number, partition_);
    Tensor images = batch_tensor(memory_.get(), DataType::fp32, {size, image[0], image[1], image[2]});
    Tensor labels = batch_tensor(memory_.get(), DataType::int32, {size});
    std::ranges::fill(images.data<float>().subspan(batch.indices.size() * image_values), 0.0F);
    std::ranges::fill(labels.data<int32_t>(), options_.padding_label);
    for (size_t row = 0; row < batch.indices.size(); ++row) {
      const std::span<float> target = images.data<float>().subspan(row * image_values, image_values);
      dataset_->read(batch.indices[row], target, labels.data<int32_t>()[row]);
      augmenter_.apply(target, options_.seed, static_cast<uint64_t>(epoch_), batch.indices[row]);
    }
    batch.fields = {{"images", std::move(images)}, {"labels", std::move(labels)}};
    return batch;
  }

  const std::shared_ptr<const Dataset> dataset_;
  const LoaderOptions options_;
  const Augmenter augmenter_;
  const std::shared_ptr<const BatchMemory> memory_;  // null: any
  const int64_t epoch_;
  const Partition partition_;
  const std::vector<int64_t> order_;
  const int64_t batches_;
  std::exception_ptr failure_;  // the consumer's alone

  std::mutex mutex_;  // guards what follows, up to the threads
  std::condition_variable slot_filled_;
  std::condition_variable slot_freed_;
  std::vector<Slot> slots_;
  int64_t next_made_;
  int64_t next_taken_;
  bool stopping_ = false;
  std::vector<std::thread> threads_;
};

}  // namespace

Loader::Loader(std::shared_ptr<const Dataset> dataset, const LoaderOptions& options)
    : dataset_(std::move(dataset)),
      options_(options),
      augmenter_(options.augmentation, dataset_ != nullptr ? dataset_->image_shape() : Shape{1, 1, 1}) {
  const auto code = ErrorCode::invalid_argument;
  require(dataset_ != nullptr, code, "a loader needs a data set");
  require(options_.batch_size > 0, code, "batch_size is {}, it must be positive", options_.batch_size);
  require(options_.workers >= 0 && options_.workers <= 256, code, "workers is {}, expected 0 to 256",
          options_.workers);
  require(options_.prefetch > 0 && options_.prefetch <= 4096, code, "prefetch is {}, expected 1 to 4096",
          options_.prefetch);
  require(*batches(0) > 0, code,
          "{} examples do not fill one batch of {}; lower batch_size or set drop_last to false",
          dataset_->size(), options_.batch_size);
}

std::vector<Field> Loader::fields() const {
  const Dimension batch = Dimension::symbol(kBatch);
  const Shape& image = dataset_->image_shape();
  return {{"images", {DataType::fp32, {batch, image[0], image[1], image[2]}}},
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
  auto pipeline =
      std::make_unique<Pipeline>(dataset_, options_, augmenter_, std::move(memory), from, partition, count);
  pipeline->start();
  return pipeline;
}

}  // namespace tessera::data
