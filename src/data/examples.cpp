#include "tessera/data/examples.h"

#include <algorithm>

#include "tessera/base/error.h"
#include "tessera/data/order.h"

#include "data/batches.h"
#include "data/class_balance.h"
#include "data/prefetch.h"

namespace tessera::data {
namespace {

// Which examples are in which batch of an epoch.
class EpochPlan {
 public:
  // `order`: of the examples in this epoch.
  EpochPlan(const Examples& examples, const BatchOptions& options, const std::vector<int64_t>& counts,
            std::vector<int64_t> order, int64_t epoch, int64_t ranks)
      : batch_sizes_(options.batch_sizes), epoch_(epoch), buckets_(counts.size()) {
    if (counts.size() == 1) {
      buckets_.front() = std::move(order);
      return;
    }
    for (const int64_t index : order)
      buckets_[static_cast<size_t>(examples.bucket_of(index))].push_back(index);
    for (size_t bucket = 0; bucket < buckets_.size(); ++bucket) {
      const int64_t batches = batches_of(counts[bucket], batch_sizes_[bucket] * ranks, options.drop_last);
      for (int64_t number = 0; number < batches; ++number) places_.push_back({bucket, number});
    }
    const std::vector<Place> sorted = places_;
    // Another order than that of as many examples under the same seed.
    constexpr uint64_t kOfBatches = 0x6261746368657321;
    const std::vector<int64_t> batches =
        epoch_order(std::ssize(sorted), options.shuffle, options.seed ^ kOfBatches, epoch);
    for (size_t i = 0; i < sorted.size(); ++i) places_[i] = sorted[static_cast<size_t>(batches[i])];
  }

  size_t bucket_of(int64_t number) const { return place_of(number).bucket; }

  Batch batch(int64_t number, const Partition& partition) const {
    const Place place = place_of(number);
    Batch batch = batch_without_fields(buckets_[place.bucket], batch_sizes_[place.bucket], epoch_,
                                       place.number, partition);
    batch.after.batch = number + 1;
    return batch;
  }

 private:
  struct Place {
    size_t bucket = 0;
    int64_t number = 0;  // of the batch within the bucket
  };
  Place place_of(int64_t number) const {
    return places_.empty() ? Place{0, number} : places_[static_cast<size_t>(number)];
  }

  std::vector<int64_t> batch_sizes_;
  int64_t epoch_;
  std::vector<std::vector<int64_t>> buckets_;  // examples of each, in this epoch's order
  std::vector<Place> places_;                  // by number of the batch; none where there is one bucket
};

// What a batch is made in.
class BatchFields {
 public:
  // `made`: the field that is the device's for which the memory is.
  BatchFields(const std::vector<Field>& fields, const SymbolBindings& sizes,
              const std::shared_ptr<const BatchMemory>& memory, std::optional<size_t> made)
      : fields_(fields), made_(made), rows_(static_cast<size_t>(sizes.at(kBatch))) {
    for (size_t i = 0; i < fields.size(); ++i) {
      const DataType type = fields[i].type.data_type;
      const Shape shape = to_static(substitute(fields[i].type.shape, sizes));
      if (made == i) {
        device_rows_.emplace(memory, type, shape);
        add({}, {}, 0);
      } else {
        Tensor tensor = batch_tensor(memory.get(), type, shape);
        auto* bytes = static_cast<std::byte*>(tensor.raw());
        add(tensor, bytes, tensor.bytes() / rows_.size());
      }
    }
  }

  // Reads the examples into the first rows; the others only fill.
  void read(const Examples& examples, std::span<const int64_t> indices, const RandomView& view) {
    DeviceRows* const made = device_rows_.has_value() ? &*device_rows_ : nullptr;
    examples.read_rows(indices, view, rows_, made);
    for (size_t row = indices.size(); row < rows_.size(); ++row) {
      if (made != nullptr) rows_[row][*made_] = made->on_host(row);
      examples.fill(rows_[row]);
    }
  }

  void move_to(Batch& batch) {
    for (size_t i = 0; i < fields_.size(); ++i) {
      if (made_ == i) {
        batch.device_fields[fields_[i].name] = device_rows_->finish();
      } else {
        batch.fields[fields_[i].name] = std::move(tensors_[i]);
      }
    }
  }

 private:
  void add(Tensor tensor, std::byte* bytes, size_t row_bytes) {
    for (size_t row = 0; row < rows_.size(); ++row)
      rows_[row].emplace_back(bytes + row * row_bytes, row_bytes);
    tensors_.push_back(std::move(tensor));
  }

  const std::vector<Field>& fields_;
  std::optional<size_t> made_;
  std::vector<Tensor> tensors_;  // by field; undefined for the device's
  std::optional<DeviceRows> device_rows_;
  std::vector<ExampleRow> rows_;
};

}  // namespace

void Examples::read_rows(std::span<const int64_t> indices, const RandomView& view,
                         std::span<const ExampleRow> rows, DeviceRows* /*made*/) const {
  for (size_t i = 0; i < indices.size(); ++i) read(indices[i], view, rows[i]);
}

void Examples::fill(const ExampleRow& row) const {
  for (const std::span<std::byte> part : row) std::ranges::fill(part, std::byte{0});
}

ExampleBatches::ExampleBatches(std::shared_ptr<const Examples> examples, const BatchOptions& options)
    : examples_(std::move(examples)), options_(options) {
  const auto code = ErrorCode::invalid_argument;
  require(examples_ != nullptr, code, "batches of no examples");
  counts_.resize(examples_->buckets().size());
  if (options_.batch_sizes.empty()) options_.batch_sizes.assign(counts_.size(), options_.batch_size);
  require(options_.batch_sizes.size() == counts_.size(), code, "{} sizes of batches for {} buckets",
          options_.batch_sizes.size(), counts_.size());
  for (const int64_t size : options_.batch_sizes)
    require(size > 0, code, "batch_size is {}, it must be positive", size);
  check_prefetch(options_.workers, options_.prefetch);
  require(!options_.balanced || options_.shuffle, code, "batches that are balanced come in a random order");
  if (options_.balanced) {
    balance_ = std::make_shared<const ClassBalance>(*examples_);
    counts_ = balance_->counts();
  } else if (counts_.size() == 1) {
    counts_.front() = examples_->size();
  } else {
    for (int64_t index = 0; index < examples_->size(); ++index)
      ++counts_.at(static_cast<size_t>(examples_->bucket_of(index)));
  }
  require(*batches(0) > 0, code,
          "{} examples do not fill one batch of {}; lower batch_size or set drop_last to false",
          examples_->size(), options_.batch_sizes.front());
}

std::vector<SymbolBindings> ExampleBatches::sizes() const {
  std::vector<SymbolBindings> sizes = examples_->buckets();
  for (size_t bucket = 0; bucket < sizes.size(); ++bucket)
    sizes[bucket][kBatch] = options_.batch_sizes[bucket];
  return sizes;
}

std::optional<int64_t> ExampleBatches::batches(int64_t /*epoch*/, int64_t ranks) const {
  int64_t batches = 0;
  for (size_t bucket = 0; bucket < counts_.size(); ++bucket)
    batches += batches_of(counts_[bucket], options_.batch_sizes[bucket] * ranks, options_.drop_last);
  return batches;
}

// Where there are several buckets, each has a last batch of its own.
std::shared_ptr<const Source> ExampleBatches::in_batches_of(int64_t samples) const {
  if (counts_.size() != 1) return nullptr;
  BatchOptions options = options_;
  options.batch_size = samples;
  options.batch_sizes.clear();
  return std::make_shared<ExampleBatches>(examples_, options);
}

std::unique_ptr<Stream> ExampleBatches::open(const Cursor& from, const Partition& partition) const {
  return open_into(nullptr, from, partition);
}

std::unique_ptr<Stream> ExampleBatches::open_into(std::shared_ptr<const BatchMemory> memory,
                                                  const Cursor& from, const Partition& partition) const {
  const int64_t count = batches_from(*this, from, partition);
  std::vector<int64_t> order =
      balance_ != nullptr ? balance_->order(options_.seed, from.epoch)
                          : epoch_order(examples_->size(), options_.shuffle, options_.seed, from.epoch);
  auto make = [examples = examples_, memory = std::move(memory), fields = fields(), sizes = sizes(),
               partition,
               view = RandomView{.seed = options_.seed, .epoch = static_cast<uint64_t>(from.epoch)},
               plan = std::make_shared<const EpochPlan>(*examples_, options_, counts_, std::move(order),
                                                        from.epoch, partition.ranks)](int64_t number) {
    Batch batch = plan->batch(number, partition);
    batch.sizes = sizes[plan->bucket_of(number)];
    const auto made = memory != nullptr ? examples->field_made_by(*memory->device()) : std::nullopt;
    BatchFields parts(fields, batch.sizes, memory, made);
    parts.read(*examples, batch.indices, view);
    parts.move_to(batch);
    return batch;
  };
  return prefetched(std::move(make), from.batch, count, options_.workers, options_.prefetch);
}

}  // namespace tessera::data
