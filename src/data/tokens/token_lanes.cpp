#include "tessera/data/token_lanes.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "tessera/base/error.h"

#include "data/batches.h"
#include "data/prefetch.h"

namespace tessera::data {
namespace {

constexpr int32_t kNoLabel = -100;  // ops::CrossEntropyOptions::ignored_label
constexpr int64_t kLargestLength = int64_t{1} << 24;

void check(const TokenLaneOptions& options) {
  const auto code = ErrorCode::invalid_argument;
  require(options.batch_size > 0, code, "batch_size is {}, it must be positive", options.batch_size);
  require(options.length > 0 && options.length <= kLargestLength, code,
          "segments of {} tokens, expected 1 to {}", options.length, kLargestLength);
  require(options.part == TokenRowPart::all || (options.test_share > 0 && options.test_share < 1), code,
          "test_share is {}, expected above 0 and below 1", options.test_share);
  check_prefetch(options.workers, options.prefetch);
}

// What a stream reads, which may outlive its source.
struct Lanes {
  std::shared_ptr<const TokenText> text;
  std::shared_ptr<const BatchMemory> memory;
  int64_t begin = 0;   // of the part in the text
  int64_t labels = 0;  // tokens that have one before them
  int64_t length = 0;
  int64_t batch = 0;
  Partition partition;

  int64_t first_of(int64_t lane) const { return lane * labels / (batch * partition.ranks); }

  // Segment `number` of a lane of all ranks'.
  void read(int64_t lane, int64_t number, std::span<int32_t> tokens, std::span<int32_t> targets) const {
    const int64_t from = first_of(lane) + number * length;
    const auto count = static_cast<size_t>(std::clamp<int64_t>(first_of(lane + 1) - from, 0, length));
    std::fill(tokens.begin() + static_cast<int64_t>(count), tokens.end(), 0);
    std::fill(targets.begin() + static_cast<int64_t>(count), targets.end(), kNoLabel);
    if (count == 0) return;
    text->read(begin + from, tokens.first(count));
    std::copy(tokens.begin() + 1, tokens.begin() + static_cast<int64_t>(count), targets.begin());
    text->read(begin + from + static_cast<int64_t>(count), targets.subspan(count - 1, 1));
  }

  Feeds fields(int64_t number) const {
    Tensor tokens = batch_tensor(memory.get(), DataType::int32, {batch, length});
    Tensor targets = batch_tensor(memory.get(), DataType::int32, {batch, length});
    Tensor begins = batch_tensor(memory.get(), DataType::int32, {batch});
    std::ranges::fill(begins.data<int32_t>(), number == 0 ? 1 : 0);
    for (int64_t row = 0; row < batch; ++row) {
      const auto part = [&](Tensor& tensor) {
        return tensor.data<int32_t>().subspan(static_cast<size_t>(row * length), static_cast<size_t>(length));
      };
      read(partition.rank * batch + row, number, part(tokens), part(targets));
    }
    return {{"tokens", tokens}, {"labels", targets}, {"begins", begins}};
  }
};

}  // namespace

TokenLanes::TokenLanes(std::shared_ptr<const TokenText> text, const TokenLaneOptions& options)
    : text_(std::move(text)), options_(options), end_(text_->size()) {
  check(options_);
  const auto held_out = static_cast<int64_t>(std::floor(static_cast<double>(end_) * options_.test_share));
  if (options_.part == TokenRowPart::training) end_ -= held_out;
  if (options_.part == TokenRowPart::test) begin_ = end_ - held_out;
  require(*batches(0) > 0, ErrorCode::invalid_argument,
          "{} tokens do not fill a segment of {} in each of {} lanes; lower batch_size or the length", size(),
          options_.length, options_.batch_size);
}

std::vector<Field> TokenLanes::fields() const {
  const Dimension batch = Dimension::symbol(kBatch);
  const TensorType of_tokens{DataType::int32, {batch, options_.length}};
  return {{"tokens", of_tokens}, {"labels", of_tokens}, {"begins", {DataType::int32, {batch}}}};
}

std::vector<SymbolBindings> TokenLanes::sizes() const {
  return {{{kBatch, options_.batch_size}}};
}

std::optional<int64_t> TokenLanes::batches(int64_t /*epoch*/, int64_t ranks) const {
  const int64_t lanes = options_.batch_size * ranks, labels = std::max<int64_t>(size() - 1, 0);
  if (options_.drop_last) return labels / lanes / options_.length;
  return batches_of(batches_of(labels, lanes, false), options_.length, false);
}

std::unique_ptr<Stream> TokenLanes::open(const Cursor& from, const Partition& partition) const {
  return open_into(nullptr, from, partition);
}

std::unique_ptr<Stream> TokenLanes::open_into(std::shared_ptr<const BatchMemory> memory, const Cursor& from,
                                              const Partition& partition) const {
  const int64_t count = batches_from(*this, from, partition);
  const Lanes lanes{.text = text_,
                    .memory = std::move(memory),
                    .begin = begin_,
                    .labels = size() - 1,
                    .length = options_.length,
                    .batch = options_.batch_size,
                    .partition = partition};
  auto make = [lanes, epoch = from.epoch](int64_t number) -> Batch {
    return {.fields = lanes.fields(number),
            .sizes = {{kBatch, lanes.batch}},
            .samples = lanes.batch,
            .after = {.epoch = epoch, .batch = number + 1}};
  };
  return prefetched(std::move(make), from.batch, count, options_.workers, options_.prefetch);
}

}  // namespace tessera::data
