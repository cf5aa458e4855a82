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

}  // namespace

// What a stream reads, which may outlive its source.
struct TokenLanes::Lanes {
  std::shared_ptr<const TokenText> text;
  std::shared_ptr<const BatchMemory> memory;
  int64_t begin = 0;   // of the part in the text
  int64_t labels = 0;  // tokens that have one before them
  int64_t length = 0;
  int64_t batch = 0;
  Partition partition;

  int64_t first_of(int64_t lane) const { return lane * labels / (batch * partition.ranks); }

  struct Segment {
    int64_t begin;   // in the text
    int64_t tokens;  // the length, or fewer at the end of a lane
  };
  // Of a lane of all ranks'.
  Segment segment(int64_t lane, int64_t number) const {
    const int64_t from = first_of(lane) + number * length;
    return {.begin = begin + from, .tokens = std::clamp<int64_t>(first_of(lane + 1) - from, 0, length)};
  }

  void read(int64_t lane, int64_t number, std::span<int32_t> tokens, std::span<int32_t> targets) const {
    const Segment own = segment(lane, number);
    const auto count = static_cast<size_t>(own.tokens);
    std::fill(tokens.begin() + own.tokens, tokens.end(), 0);
    std::fill(targets.begin() + own.tokens, targets.end(), kNoLabel);
    if (count == 0) return;
    text->read(own.begin, tokens.first(count));
    std::copy(tokens.begin() + 1, tokens.begin() + own.tokens, targets.begin());
    text->read(own.begin + own.tokens, targets.subspan(count - 1, 1));
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

TokenLanes::Lanes TokenLanes::lanes_of(const Partition& partition) const {
  return {.text = text_,
          .memory = {},
          .begin = begin_,
          .labels = size() - 1,
          .length = options_.length,
          .batch = options_.batch_size,
          .partition = partition};
}

std::vector<int64_t> TokenLanes::most_labels(std::span<const int64_t> cutoffs, int64_t ranks) const {
  const size_t parts = cutoffs.size(), segments = static_cast<size_t>(*batches(0, ranks));
  const Lanes all = lanes_of({.ranks = ranks});
  std::vector<int32_t> labels(static_cast<size_t>(options_.length));
  std::vector<int64_t> most(parts, 0);
  for (int64_t rank = 0; rank < ranks; ++rank) {
    std::vector<int64_t> above(segments * parts, 0);  // of each batch, no less than each cutoff
    for (int64_t row = 0; row < options_.batch_size; ++row) {
      for (size_t number = 0; number < segments; ++number) {
        const Lanes::Segment own =
            all.segment(rank * options_.batch_size + row, static_cast<int64_t>(number));
        const auto read = std::span(labels).first(static_cast<size_t>(own.tokens));
        all.text->read(own.begin + 1, read);
        for (size_t part = 0; part < parts; ++part) {
          above[number * parts + part] +=
              std::ranges::count_if(read, [from = cutoffs[part]](int32_t label) { return label >= from; });
        }
      }
    }
    for (size_t i = 0; i < above.size(); ++i) {
      const size_t part = i % parts;
      most[part] = std::max(most[part], above[i] - (part + 1 < parts ? above[i + 1] : 0));
    }
  }
  return most;
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
  Lanes own = lanes_of(partition);
  own.memory = std::move(memory);
  auto make = [own, epoch = from.epoch](int64_t number) -> Batch {
    return {.fields = own.fields(number),
            .sizes = {{kBatch, own.batch}},
            .samples = own.batch,
            .after = {.epoch = epoch, .batch = number + 1}};
  };
  return prefetched(std::move(make), from.batch, count, options_.workers, options_.prefetch);
}

}  // namespace tessera::data
