#include "tessera/data/rows.h"

#include <algorithm>
#include <cmath>
#include <cstring>

#include "tessera/base/error.h"
#include "tessera/data/order.h"

#include "data/batches.h"

namespace tessera::data {
namespace {

constexpr const char* kBatch = "batch";  // the symbol of the first axis

// Zeros after the last, up to `count`.
Tensor take_rows(const Tensor& tensor, const std::vector<int64_t>& indices, int64_t count) {
  Shape shape = tensor.shape();
  const size_t bytes = tensor.bytes() / static_cast<size_t>(shape[0]);
  shape[0] = count;
  Tensor rows(tensor.data_type(), shape);
  auto* target = static_cast<std::byte*>(rows.raw());
  const auto* source = static_cast<const std::byte*>(tensor.raw());
  for (const int64_t index : indices) {
    std::memcpy(target, source + static_cast<size_t>(index) * bytes, bytes);
    target += bytes;
  }
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

class RowStream : public Stream {
 public:
  RowStream(std::shared_ptr<const Feeds> tensors, const RowOptions& options, int64_t size, const Cursor& from,
            const Partition& partition, int64_t batches)
      : tensors_(std::move(tensors)),
        batch_size_(options.batch_size),
        order_(options.shuffle ? shuffled_order(size, options.seed, static_cast<uint64_t>(from.epoch))
                               : sequential_order(size)),
        place_(from),
        partition_(partition),
        batches_(batches) {}

  std::optional<Batch> next() override {
    if (place_.batch == batches_) return std::nullopt;
    const int64_t begin = (place_.batch * partition_.ranks + partition_.rank) * batch_size_;
    const int64_t count = std::clamp<int64_t>(std::ssize(order_) - begin, 0, batch_size_);
    ++place_.batch;
    Batch batch{.sizes = {{kBatch, batch_size_}}, .samples = count, .after = place_};
    if (count > 0) batch.indices.assign(order_.begin() + begin, order_.begin() + begin + count);
    for (const auto& [name, tensor] : *tensors_)
      batch.fields[name] = take_rows(tensor, batch.indices, batch_size_);
    return batch;
  }

 private:
  const std::shared_ptr<const Feeds> tensors_;
  const int64_t batch_size_;
  const std::vector<int64_t> order_;
  Cursor place_;
  const Partition partition_;
  const int64_t batches_;
};

}  // namespace

HeldOut hold_out(const Feeds& tensors, double share) {
  const int64_t rows = count_rows(tensors);
  std::vector<int64_t> training;
  std::vector<int64_t> test;
  for (int64_t row = 0; row < rows; ++row) {
    const auto before = std::floor(static_cast<double>(row) * share);
    const bool held = std::floor(static_cast<double>(row + 1) * share) > before;
    (held ? test : training).push_back(row);
  }
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
  const int64_t count = batches_from(*this, from, partition);
  return std::make_unique<RowStream>(tensors_, options_, size_, from, partition, count);
}

}  // namespace tessera::data
