#include "tessera/data/rows.h"

#include <cstring>

#include "tessera/base/error.h"

#include "data/batches.h"
#include "data/prefetch.h"

namespace tessera::data {
namespace {

// Zeros after the last, up to `count`; in that memory, if any is given.
Tensor take_rows(const Tensor& tensor, const std::vector<int64_t>& indices, int64_t count,
                 const BatchMemory* memory = nullptr) {
  Shape shape = tensor.shape();
  const size_t bytes = tensor.bytes() / static_cast<size_t>(shape[0]);
  shape[0] = count;
  Tensor rows = batch_tensor(memory, tensor.data_type(), shape);
  auto* target = static_cast<std::byte*>(rows.raw());
  const auto* source = static_cast<const std::byte*>(tensor.raw());
  for (const int64_t index : indices) {
    std::memcpy(target, source + static_cast<size_t>(index) * bytes, bytes);
    target += bytes;
  }
  std::memset(target, 0, rows.bytes() - indices.size() * bytes);
  return rows;
}

// How many rows there are of each.
int64_t count_rows(const Feeds& tensors) {
  const auto code = ErrorCode::invalid_argument;
  require(!tensors.empty(), code, "rows of no tensor");
  const auto& [first, other] = *tensors.begin();
  for (const auto& [name, tensor] : tensors) {
    const int64_t rows = tensor.shape().empty() ? 0 : tensor.shape()[0];
    require(rows > 0, code, "'{}' has no rows: {}", name, to_string(tensor.shape()));
    require(rows == other.shape()[0], code, "'{}' has {} rows, '{}' has {}", name, rows, first,
            other.shape()[0]);
  }
  return other.shape()[0];
}

}  // namespace

HeldOut hold_out(const Feeds& tensors, double share) {
  const int64_t rows = count_rows(tensors);
  std::vector<int64_t> training;
  std::vector<int64_t> test;
  for (int64_t row = 0; row < rows; ++row) (is_held_out(row, share) ? test : training).push_back(row);
  require(!training.empty() && !test.empty(), ErrorCode::invalid_argument,
          "{} of {} rows cannot be held out: none would be left on one side", share, rows);
  HeldOut result;
  for (const auto& [name, tensor] : tensors) {
    result.training[name] = take_rows(tensor, training, std::ssize(training));
    result.test[name] = take_rows(tensor, test, std::ssize(test));
  }
  return result;
}

Rows::Rows(Feeds tensors, const RowOptions& options) : options_(options) {
  const auto code = ErrorCode::invalid_argument;
  require(options.batch_size > 0, code, "batch_size is {}, it must be positive", options.batch_size);
  check_prefetch(options.workers, options.prefetch);
  size_ = count_rows(tensors);
  tensors_ = std::make_shared<const Feeds>(std::move(tensors));
  require(*batches(0) > 0, code,
          "{} rows do not fill one batch of {}; lower batch_size or set drop_last to false", size_,
          options.batch_size);
}

std::vector<Field> Rows::fields() const {
  std::vector<Field> fields;
  for (const auto& [name, tensor] : *tensors_) {
    SymbolicShape shape = to_symbolic(tensor.shape());
    shape[0] = Dimension::symbol(kBatch);
    fields.push_back({name, {tensor.data_type(), shape}});
  }
  return fields;
}

std::vector<SymbolBindings> Rows::sizes() const {
  return {{{kBatch, options_.batch_size}}};
}

std::optional<int64_t> Rows::batches(int64_t /*epoch*/, int64_t ranks) const {
  return batches_of(size_, options_.batch_size * ranks, options_.drop_last);
}

std::unique_ptr<Stream> Rows::open(const Cursor& from, const Partition& partition) const {
  return open_into(nullptr, from, partition);
}

std::unique_ptr<Stream> Rows::open_into(std::shared_ptr<const BatchMemory> memory, const Cursor& from,
                                        const Partition& partition) const {
  const int64_t count = batches_from(*this, from, partition);
  auto make = [tensors = tensors_, memory = std::move(memory), size = options_.batch_size,
               order = epoch_order(size_, options_.shuffle, options_.seed, from.epoch), epoch = from.epoch,
               partition](int64_t number) {
    Batch batch = batch_without_fields(order, size, epoch, number, partition);
    for (const auto& [name, tensor] : *tensors)
      batch.fields[name] = take_rows(tensor, batch.indices, size, memory.get());
    return batch;
  };
  return prefetched(std::move(make), from.batch, count, options_.workers, options_.prefetch);
}

}  // namespace tessera::data
