#include "tessera/train/prediction.h"

#include <algorithm>
#include <span>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "tessera/base/error.h"

namespace tessera::train {
namespace {

constexpr int64_t kShownNumbers = 10;  // of an output, for one example

class PlainPredictionText : public PredictionText {
 public:
  explicit PlainPredictionText(std::string samples) : samples_(std::move(samples)) {}

 private:
  std::string example(const Example& one) override {
    std::string text = fmt::format("{}, number {}:\n", samples_, one.number);
    for (const auto& [name, tensor] : one.outputs) text += "  " + describe(name, tensor, one.row) + "\n";
    return text;
  }

  static std::string describe(const std::string& name, const Tensor& tensor, int64_t row) {
    // What has no row for each example is said of each.
    const bool by_rows = !tensor.shape().empty() && tensor.shape()[0] > row;
    const int64_t count = by_rows ? tensor.size() / tensor.shape()[0] : tensor.size();
    const int64_t first = by_rows ? row * count : 0;
    std::vector<double> shown;
    for (int64_t i = 0; i < std::min(count, kShownNumbers); ++i) shown.push_back(tensor.at(first + i));
    const std::string more = count > kShownNumbers ? fmt::format(" ... of {}", count) : "";
    return fmt::format("{} {:.4g}{}", name, fmt::join(shown, " "), more);
  }

  std::string samples_;
};

}  // namespace

std::string PredictionText::tell(const data::Batch& batch, const Feeds& outputs) {
  const data::Batch read = batch.on_host();
  std::string text;
  for (int64_t row = 0; row < read.samples; ++row) {
    const int64_t number = read.indices.empty() ? told_ : read.indices[static_cast<size_t>(row)];
    ++told_;
    text += example({read, outputs, row, number});
  }
  return text;
}

PredictionTextMaker plain_prediction_text(std::string samples) {
  return [samples = std::move(samples)] { return std::make_unique<PlainPredictionText>(samples); };
}

int64_t rows_of(const RunFeeds& inputs, int64_t samples) {
  Shape shape;
  if (!inputs.host.empty()) {
    shape = inputs.host.begin()->second.shape();
  } else if (!inputs.there.empty()) {
    shape = inputs.there.begin()->second.shape();
  }
  return shape.empty() ? samples : shape.front();
}

void PredictionTable::add(const data::Batch& batch, const Feeds& outputs, int64_t rows) {
  for (const auto& [name, tensor] : outputs) {
    require(!tensor.shape().empty() && tensor.shape()[0] == rows, ErrorCode::unsupported,
            "'{}' is {}, and has no row for each of the {} of a batch", name, to_string(tensor.shape()),
            rows);
    Shape shape = tensor.shape();
    shape[0] = 0;
    Column& column = columns_.try_emplace(name, Column{tensor.data_type(), shape, {}}).first->second;
    shape[0] = column.shape[0];
    require(shape == column.shape && tensor.data_type() == column.type, ErrorCode::unsupported,
            "'{}' is {}{} for some batches and {}{} for others", name, to_string(column.type),
            to_string(column.shape), to_string(tensor.data_type()), to_string(tensor.shape()));
    const size_t row_bytes = rows == 0 ? 0 : tensor.bytes() / static_cast<size_t>(rows);
    const std::span<const std::byte> bytes(static_cast<const std::byte*>(tensor.raw()),
                                           row_bytes * static_cast<size_t>(batch.samples));
    column.bytes.insert(column.bytes.end(), bytes.begin(), bytes.end());
    column.shape[0] += batch.samples;
  }
}

Feeds PredictionTable::outputs() const {
  Feeds outputs;
  for (const auto& [name, column] : columns_) {
    Tensor tensor(column.type, column.shape);
    std::ranges::copy(column.bytes, static_cast<std::byte*>(tensor.raw()));
    outputs.emplace(name, std::move(tensor));
  }
  return outputs;
}

}  // namespace tessera::train
