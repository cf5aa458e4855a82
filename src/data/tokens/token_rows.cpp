#include "tessera/data/token_rows.h"

#include <algorithm>
#include <limits>

#include "tessera/base/error.h"

#include "data/batches.h"
#include "data/prefetch.h"
#include "data/tokens/joined_tokens.h"

namespace tessera::data {
namespace {

constexpr int64_t kLargestLength = int64_t{1} << 24;

void check(const TokenSet& set, const TokenRowOptions& options) {
  const auto code = ErrorCode::invalid_argument;
  require(options.batch_size > 0, code, "batch_size is {}, it must be positive", options.batch_size);
  require(options.length > 0 && options.length <= kLargestLength, code, "rows of {} tokens, expected 1 to {}",
          options.length, kLargestLength);
  require(options.kind == TokenRowKind::documents || set.header().fields == 1, code,
          "documents of two texts are no long text; take a document a row");
  require(options.part == TokenRowPart::all || (options.test_share > 0 && options.test_share < 1), code,
          "test_share is {}, expected above 0 and below 1", options.test_share);
  check_prefetch(options.workers, options.prefetch);
}

std::vector<int64_t> rows_of(TokenRowPart part, int64_t count, double share) {
  std::vector<int64_t> rows;
  for (int64_t row = 0; row < count; ++row)
    if (is_held_out(row, share) == (part == TokenRowPart::test)) rows.push_back(row);
  return rows;
}

}  // namespace

struct TokenRows::State {
  State(std::shared_ptr<const TokenSet> given, const TokenRowOptions& chosen)
      : set(std::move(given)), options(chosen), joined(*set, set->header().separator) {
    const bool whole = options.kind == TokenRowKind::documents;
    count = whole ? set->documents() : joined.size() / options.length;
    if (options.part != TokenRowPart::all) rows = rows_of(options.part, count, options.test_share);
    for (const TokenShard& shard : set->shards())
      first_documents.push_back(first_documents.back() + shard.documents());
  }

  int64_t size() const { return options.part == TokenRowPart::all ? count : std::ssize(rows); }

  // "tokens", or "source" and "target".
  std::vector<std::string> texts() const {
    return set->header().fields == 1 ? std::vector<std::string>{"tokens"}
                                     : std::vector<std::string>{"source", "target"};
  }
  static std::string lengths_of(const std::string& text) {
    return text == "tokens" ? "lengths" : text + "_lengths";
  }

  // Rows after `indices` are zeros.
  Feeds batch(const std::vector<int64_t>& indices, int64_t size, const BatchMemory* memory) const {
    Feeds fields;
    int64_t field = 0;
    for (const std::string& text : texts()) {
      Tensor tokens = batch_tensor(memory, DataType::int32, {size, options.length});
      std::span<int32_t> targets = tokens.data<int32_t>();
      Tensor lengths;
      if (options.kind == TokenRowKind::documents) {
        lengths = batch_tensor(memory, DataType::int32, {size});
        std::fill(lengths.data<int32_t>().begin(), lengths.data<int32_t>().end(), 0);
        fields[lengths_of(text)] = lengths;
      }
      const auto length = static_cast<size_t>(options.length);
      for (size_t i = 0; i < indices.size(); ++i) {
        const int64_t row =
            options.part == TokenRowPart::all ? indices[i] : rows[static_cast<size_t>(indices[i])];
        const std::span<int32_t> target = targets.subspan(i * length, length);
        if (options.kind == TokenRowKind::joined) {
          joined.read(row * options.length, target);
        } else {
          lengths.data<int32_t>()[i] = read_document(row, field, target);
        }
      }
      std::fill(targets.begin() + std::ssize(indices) * options.length, targets.end(), 0);
      fields[text] = tokens;
      ++field;
    }
    return fields;
  }

  // How much of the row is no padding.
  int32_t read_document(int64_t document, int64_t field, std::span<int32_t> target) const {
    const auto next = std::upper_bound(first_documents.begin(), first_documents.end(), document);
    const auto number = static_cast<size_t>(next - first_documents.begin() - 1);
    const TokenShard& shard = set->shards()[number];
    const TokenShard::Place place = shard.place(document - first_documents[number], field);
    const TokenSetHeader& header = set->header();
    const size_t around = (header.begin ? 1 : 0) + (header.separator ? 1 : 0);
    const size_t room = target.size() > around ? target.size() - around : 0;
    const size_t count = std::min(room, static_cast<size_t>(place.end - place.begin));
    size_t filled = 0;
    const auto put = [&](std::optional<int32_t> token) {
      if (token && filled < target.size()) target[filled++] = *token;
    };
    put(header.begin);
    shard.read(place.begin, target.subspan(filled, count));
    filled += count;
    put(header.separator);
    std::fill(target.begin() + static_cast<int64_t>(filled), target.end(), header.padding.value_or(0));
    return static_cast<int32_t>(filled);
  }

  const std::shared_ptr<const TokenSet> set;
  const TokenRowOptions options;
  const JoinedTokens joined;
  int64_t count = 0;
  std::vector<int64_t> rows;                   // of a part
  std::vector<int64_t> first_documents = {0};  // of each shard, and the end
};

TokenRows::TokenRows(std::shared_ptr<const TokenSet> set, const TokenRowOptions& options) {
  check(*set, options);
  state_ = std::make_shared<const State>(std::move(set), options);
  require(*batches(0) > 0, ErrorCode::invalid_argument,
          "{} rows of {} tokens do not fill one batch of {}; lower batch_size or the length, or set "
          "drop_last to false",
          size(), options.length, options.batch_size);
}

int64_t TokenRows::size() const {
  return state_->size();
}

Feeds TokenRows::row(int64_t index) const {
  require(index >= 0 && index < size(), ErrorCode::invalid_argument, "row {} of {}", index, size());
  return state_->batch({index}, 1, nullptr);
}

std::vector<Field> TokenRows::fields() const {
  std::vector<Field> fields;
  const Dimension batch = Dimension::symbol(kBatch);
  for (const std::string& text : state_->texts()) {
    fields.push_back({text, {DataType::int32, {batch, state_->options.length}}});
    if (state_->options.kind == TokenRowKind::documents)
      fields.push_back({State::lengths_of(text), {DataType::int32, {batch}}});
  }
  return fields;
}

std::vector<SymbolBindings> TokenRows::sizes() const {
  return {{{kBatch, state_->options.batch_size}}};
}

std::optional<int64_t> TokenRows::batches(int64_t /*epoch*/, int64_t ranks) const {
  return batches_of(size(), state_->options.batch_size * ranks, state_->options.drop_last);
}

std::unique_ptr<Stream> TokenRows::open(const Cursor& from, const Partition& partition) const {
  return open_into(nullptr, from, partition);
}

std::unique_ptr<Stream> TokenRows::open_into(std::shared_ptr<const BatchMemory> memory, const Cursor& from,
                                             const Partition& partition) const {
  const int64_t count = batches_from(*this, from, partition);
  const TokenRowOptions& options = state_->options;
  auto make = [state = state_, memory = std::move(memory),
               order = epoch_order(size(), options.shuffle, options.seed, from.epoch), epoch = from.epoch,
               partition](int64_t number) {
    Batch batch = batch_without_fields(order, state->options.batch_size, epoch, number, partition);
    batch.fields = state->batch(batch.indices, state->options.batch_size, memory.get());
    return batch;
  };
  return prefetched(std::move(make), from.batch, count, options.workers, options.prefetch);
}

}  // namespace tessera::data
