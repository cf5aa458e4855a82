#include "tessera/data/token_rows.h"

#include <algorithm>
#include <limits>

#include "tessera/base/error.h"

#include "data/batches.h"
#include "data/prefetch.h"
#include "data/tokens/documents.h"
#include "data/tokens/joined_tokens.h"
#include "data/tokens/token_pairs.h"

namespace tessera::data {
namespace {

constexpr int64_t kLargestLength = int64_t{1} << 24;

void check(const TokenSet& set, const TokenRowOptions& options) {
  const auto code = ErrorCode::invalid_argument;
  require(options.batch_size > 0, code, "batch_size is {}, it must be positive", options.batch_size);
  require(options.length > 0 && options.length <= kLargestLength, code, "rows of {} tokens, expected 1 to {}",
          options.length, kLargestLength);
  require(options.kind != TokenRowKind::joined || set.header().fields == 1, code,
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
      : set(std::move(given)), options(chosen), joined(*set, set->header().separator), documents(*set) {
    if (options.kind == TokenRowKind::pairs) pairs.emplace(*set, options.length, options.seed);
    if (options.part != TokenRowPart::all) rows = rows_of(options.part, all_rows(), options.test_share);
  }

  int64_t all_rows() const {
    switch (options.kind) {
      case TokenRowKind::joined:
        return joined.size() / options.length;
      case TokenRowKind::documents:
        return documents.size();
      case TokenRowKind::pairs:
        return pairs->size();
    }
    return 0;
  }
  int64_t size() const { return options.part == TokenRowPart::all ? all_rows() : std::ssize(rows); }

  // "tokens", or "source" and "target".
  std::vector<std::string> texts() const {
    return set->header().fields == 1 ? std::vector<std::string>{"tokens"}
                                     : std::vector<std::string>{"source", "target"};
  }
  static std::string lengths_of(const std::string& text) {
    return text == "tokens" ? "lengths" : text + "_lengths";
  }

  std::vector<Field> fields() const {
    const Dimension batch = Dimension::symbol(kBatch);
    const TensorType of_tokens{DataType::int32, {batch, options.length}};
    const TensorType of_rows{DataType::int32, {batch}};
    if (options.kind == TokenRowKind::pairs)
      return {
          {"tokens", of_tokens}, {"segments", of_tokens}, {"lengths", of_rows}, {"next_sentence", of_rows}};
    std::vector<Field> fields;
    for (const std::string& text : texts()) {
      fields.push_back({text, of_tokens});
      if (options.kind == TokenRowKind::documents) fields.push_back({lengths_of(text), of_rows});
    }
    return fields;
  }

  // Rows after `indices` are zeros.
  Feeds batch(const std::vector<int64_t>& indices, int64_t size, int64_t epoch,
              const BatchMemory* memory) const {
    Feeds feeds;
    for (const Field& field : fields()) {
      Shape shape{size};
      if (field.type.rank() == 2) shape.push_back(options.length);
      Tensor tensor = batch_tensor(memory, DataType::int32, shape);
      const int64_t filled = tensor.size() / size * std::ssize(indices);
      std::ranges::fill(tensor.data<int32_t>().subspan(static_cast<size_t>(filled)), 0);
      feeds.emplace(field.name, tensor);
    }
    for (size_t i = 0; i < indices.size(); ++i) {
      const auto place = static_cast<size_t>(indices[i]);
      read(options.part == TokenRowPart::all ? indices[i] : rows[place], epoch, i, feeds);
    }
    return feeds;
  }

  // A row to its place in a batch.
  void read(int64_t row, int64_t epoch, size_t place, Feeds& feeds) const {
    const auto whole = [&](const std::string& field) {
      const auto length = static_cast<size_t>(options.length);
      return feeds.at(field).data<int32_t>().subspan(place * length, length);
    };
    const auto one = [&](const std::string& field) { return &feeds.at(field).data<int32_t>()[place]; };
    if (options.kind == TokenRowKind::pairs) {
      pairs->read(row, epoch,
                  {.tokens = whole("tokens"),
                   .segments = whole("segments"),
                   .length = one("lengths"),
                   .unrelated = one("next_sentence")});
      return;
    }
    int64_t field = 0;
    for (const std::string& text : texts()) {
      if (options.kind == TokenRowKind::joined) {
        joined.read(row * options.length, whole(text));
      } else {
        *one(lengths_of(text)) = read_document(row, field, whole(text));
      }
      ++field;
    }
  }

  // How much of the row is no padding.
  int32_t read_document(int64_t document, int64_t field, std::span<int32_t> target) const {
    const auto [shard, place] = documents.find(document, field);
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
  const Documents documents;
  std::optional<TokenPairs> pairs;
  std::vector<int64_t> rows;  // of a part
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
  return state_->batch({index}, 1, 0, nullptr);
}

std::vector<Field> TokenRows::fields() const {
  return state_->fields();
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
    batch.fields = state->batch(batch.indices, state->options.batch_size, epoch, memory.get());
    return batch;
  };
  return prefetched(std::move(make), from.batch, count, options.workers, options.prefetch);
}

}  // namespace tessera::data
