#include "tessera/data/token_rows.h"

#include <algorithm>
#include <limits>

#include "tessera/base/error.h"

#include "data/batches.h"
#include "data/prefetch.h"
#include "data/tokens/documents.h"
#include "data/tokens/even_batches.h"
#include "data/tokens/joined_tokens.h"
#include "data/tokens/packed_rows.h"
#include "data/tokens/token_pairs.h"

namespace tessera::data {
namespace {

constexpr int64_t kLargestLength = int64_t{1} << 24;

void check(const TokenSet& set, const TokenRowOptions& options) {
  const auto code = ErrorCode::invalid_argument;
  require(options.batch_size > 0, code, "batch_size is {}, it must be positive", options.batch_size);
  require(options.length > 0 && options.length <= kLargestLength, code, "rows of {} tokens, expected 1 to {}",
          options.length, kLargestLength);
  require(options.packed == 1 || (options.packed > 0 && options.kind == TokenRowKind::pairs), code,
          "{} texts of a row: at least 1, and more than that are pairs", options.packed);
  require(!options.even_batches || (options.kind == TokenRowKind::pairs && options.packed == 1), code,
          "even batches are those of pairs in rows of their own");
  require(!options.even_batches || options.drop_last, code,
          "even batches are whole ones: set drop_last to true");
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
    if (options.packed > 1) packs = packed_rows(lengths(), options.length, options.packed);
    if (options.even_batches) even.emplace(lengths(), options.batch_size);
  }

  // Of the pairs of this part.
  std::vector<int64_t> lengths() const {
    std::vector<int64_t> result;
    for (int64_t place = 0; place < size(); ++place) result.push_back(pairs->length(row_at(place)));
    return result;
  }

  // In which an epoch visits the rows of this part.
  std::vector<int64_t> order(int64_t epoch, int64_t ranks) const {
    std::vector<int64_t> result = epoch_order(size(), options.shuffle, options.seed, epoch);
    return even ? even->order(result, ranks) : result;
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
  int64_t size() const {
    if (!packs.empty()) return std::ssize(packs);
    return options.part == TokenRowPart::all ? all_rows() : std::ssize(rows);
  }
  // Of a place in this part.
  int64_t row_at(int64_t place) const {
    return options.part == TokenRowPart::all ? place : rows[static_cast<size_t>(place)];
  }

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
    if (options.kind == TokenRowKind::pairs) {
      TensorType of_pairs = of_rows;
      if (options.packed > 1) of_pairs.shape.emplace_back(options.packed);
      return {
          {"tokens", of_tokens}, {"segments", of_tokens}, {"lengths", of_pairs}, {"next_sentence", of_pairs}};
    }
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
      if (field.type.rank() == 2) shape.push_back(field.type.shape[1].value());
      Tensor tensor = batch_tensor(memory, DataType::int32, shape);
      const int64_t filled = tensor.size() / size * std::ssize(indices);
      std::ranges::fill(tensor.data<int32_t>().subspan(static_cast<size_t>(filled)), 0);
      feeds.emplace(field.name, tensor);
    }
    for (size_t i = 0; i < indices.size(); ++i) {
      if (options.kind == TokenRowKind::pairs) {
        read_pairs(indices[i], epoch, i, feeds);
      } else {
        read(row_at(indices[i]), i, feeds);
      }
    }
    return feeds;
  }

  // A row's part of a field.
  std::span<int32_t> part_of(Feeds& feeds, const std::string& field, size_t place) const {
    const Tensor& tensor = feeds.at(field);
    const auto each = static_cast<size_t>(tensor.size() / tensor.shape()[0]);
    return feeds.at(field).data<int32_t>().subspan(place * each, each);
  }

  // The pairs of a row to its place in a batch, one after another; the last one fills it up.
  void read_pairs(int64_t number, int64_t epoch, size_t place, Feeds& feeds) const {
    std::vector<int64_t> shared{number};
    if (!packs.empty()) shared = packs[static_cast<size_t>(number)];
    std::span<int32_t> tokens = part_of(feeds, "tokens", place);
    std::span<int32_t> segments = part_of(feeds, "segments", place);
    const std::span<int32_t> lengths = part_of(feeds, "lengths", place);
    const std::span<int32_t> unrelated = part_of(feeds, "next_sentence", place);
    std::ranges::fill(lengths, 0);
    std::ranges::fill(unrelated, 0);
    for (size_t i = 0; i < shared.size(); ++i) {
      pairs->read(
          row_at(shared[i]), epoch,
          {.tokens = tokens, .segments = segments, .length = &lengths[i], .unrelated = &unrelated[i]});
      tokens = tokens.subspan(static_cast<size_t>(lengths[i]));
      segments = segments.subspan(static_cast<size_t>(lengths[i]));
    }
  }

  // A row of another kind to its place in a batch.
  void read(int64_t row, size_t place, Feeds& feeds) const {
    int64_t field = 0;
    for (const std::string& text : texts()) {
      if (options.kind == TokenRowKind::joined) {
        joined.read(row * options.length, part_of(feeds, text, place));
      } else {
        part_of(feeds, lengths_of(text), place)[0] = read_document(row, field, part_of(feeds, text, place));
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
  std::vector<int64_t> rows;                // of a part
  std::vector<std::vector<int64_t>> packs;  // the places in it that share each row; empty: none do
  std::optional<EvenBatches> even;
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

int64_t TokenRows::most_tokens() const {
  return state_->even ? state_->even->most_tokens() : state_->options.batch_size * state_->options.length;
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

std::shared_ptr<const Source> TokenRows::in_batches_of(int64_t samples) const {
  TokenRowOptions options = state_->options;
  options.batch_size = samples;
  return std::make_shared<TokenRows>(state_->set, options);
}

std::unique_ptr<Stream> TokenRows::open(const Cursor& from, const Partition& partition) const {
  return open_into(nullptr, from, partition);
}

std::unique_ptr<Stream> TokenRows::open_into(std::shared_ptr<const BatchMemory> memory, const Cursor& from,
                                             const Partition& partition) const {
  const int64_t count = batches_from(*this, from, partition);
  const TokenRowOptions& options = state_->options;
  auto make = [state = state_, memory = std::move(memory), order = state_->order(from.epoch, partition.ranks),
               epoch = from.epoch, partition](int64_t number) {
    Batch batch = batch_without_fields(order, state->options.batch_size, epoch, number, partition);
    batch.fields = state->batch(batch.indices, state->options.batch_size, epoch, memory.get());
    return batch;
  };
  return prefetched(std::move(make), from.batch, count, options.workers, options.prefetch);
}

}  // namespace tessera::data
