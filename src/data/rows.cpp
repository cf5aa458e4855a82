#include "tessera/data/rows.h"

#include <cmath>
#include <cstring>
#include <limits>

#include "tessera/base/error.h"

#include "data/batches.h"

namespace tessera::data {
namespace {

Tensor take_rows(const Tensor& tensor, const std::vector<int64_t>& indices) {
  Shape shape = tensor.shape();
  const size_t bytes = tensor.bytes() / static_cast<size_t>(shape[0]);
  shape[0] = std::ssize(indices);
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

class TensorRows : public Examples {
 public:
  explicit TensorRows(Feeds tensors) : tensors_(std::move(tensors)), size_(count_rows(tensors_)) {}

  int64_t size() const override { return size_; }
  std::vector<Field> fields() const override {
    std::vector<Field> fields;
    for (const auto& [name, tensor] : tensors_) {
      SymbolicShape shape = to_symbolic(tensor.shape());
      shape[0] = Dimension::symbol(kBatch);
      fields.push_back({name, {tensor.data_type(), shape}});
    }
    return fields;
  }
  void read(int64_t index, const RandomView& /*view*/, const ExampleRow& row) const override {
    auto target = row.begin();
    for (const auto& [name, tensor] : tensors_) {
      const auto* source = static_cast<const std::byte*>(tensor.raw());
      std::memcpy(target->data(), source + static_cast<size_t>(index) * target->size(), target->size());
      ++target;
    }
  }
  // What the tensor `labels` has of each row, where that is one whole number.
  int32_t class_of(int64_t index) const override {
    const auto labels = tensors_.find("labels");
    if (labels == tensors_.end() || labels->second.shape().size() != 1) return -1;
    const double label = labels->second.at(index);
    constexpr double kMost = std::numeric_limits<int32_t>::max();
    return label >= 0 && label <= kMost && label == std::floor(label) ? static_cast<int32_t>(label) : -1;
  }
  const Feeds& tensors() const { return tensors_; }

 private:
  Feeds tensors_;
  int64_t size_;
};

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
    result.training[name] = take_rows(tensor, training);
    result.test[name] = take_rows(tensor, test);
  }
  return result;
}

Rows::Rows(Feeds tensors, const BatchOptions& options)
    : ExampleBatches(std::make_shared<const TensorRows>(std::move(tensors)), options) {}

const Feeds& Rows::tensors() const {
  return static_cast<const TensorRows&>(examples()).tensors();
}

}  // namespace tessera::data
