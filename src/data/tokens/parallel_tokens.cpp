#include "tessera/data/parallel_tokens.h"

#include <algorithm>
#include <functional>

#include <fmt/format.h>

#include "tessera/base/error.h"

#include "data/batches.h"
#include "data/tokens/documents.h"

namespace tessera::data {
namespace {

constexpr const char* kTokens = "tokens";

void check(const TokenSet& set, const ParallelOptions& options) {
  const auto code = ErrorCode::invalid_argument;
  require(set.header().fields == 2, code, "these shards hold no texts beside their translations");
  require(set.header().separator.has_value(), code,
          "the vocabulary has no token that ends a text, such as </s> or <|endoftext|>");
  require(!options.lengths.empty() && options.lengths.front() > 1 &&
              std::ranges::is_sorted(options.lengths, std::less_equal()),
          code, "lengths of rows are two tokens or more, and rise");
  require(options.part == TokenRowPart::all || (options.test_share > 0 && options.test_share < 1), code,
          "test_share is {}, expected above 0 and below 1", options.test_share);
}

bool is_of(const ParallelOptions& options, int64_t document) {
  if (options.part == TokenRowPart::all) return true;
  return is_held_out(document, options.test_share) == (options.part == TokenRowPart::test);
}

}  // namespace

ParallelTokens::ParallelTokens(std::shared_ptr<const TokenSet> set, ParallelOptions options)
    : set_(std::move(set)), options_(std::move(options)) {
  check(*set_, options_);
  const Documents documents(*set_);
  for (int64_t document = 0; document < documents.size(); ++document) {
    if (!is_of(options_, document)) continue;
    int64_t longest = 0;
    for (int64_t field = 0; field < 2; ++field) {
      const TokenShard::Place place = documents.find(document, field).place;
      longest = std::max(longest, place.end - place.begin);
    }
    const auto bucket = std::ranges::lower_bound(options_.lengths, longest + 1) - options_.lengths.begin();
    if (bucket == std::ssize(options_.lengths)) {
      ++left_out_;
    } else {
      pairs_.push_back({document, static_cast<int32_t>(bucket)});
    }
  }
}

std::vector<Field> ParallelTokens::fields() const {
  const Dimension batch = Dimension::symbol(kBatch);
  const TensorType of_tokens{DataType::int32, {batch, Dimension::symbol(kTokens)}};
  const TensorType of_rows{DataType::int32, {batch}};
  return {{"source", of_tokens},
          {"source_lengths", of_rows},
          {"target", of_tokens},
          {"labels", of_tokens},
          {"target_lengths", of_rows}};
}

std::vector<SymbolBindings> ParallelTokens::buckets() const {
  std::vector<SymbolBindings> buckets;
  for (const int64_t length : options_.lengths) buckets.push_back({{kTokens, length}});
  return buckets;
}

int64_t ParallelTokens::bucket_of(int64_t index) const {
  return pairs_[static_cast<size_t>(index)].bucket;
}

std::vector<int32_t> ParallelTokens::tokens(int64_t index, int64_t field) const {
  const auto [shard, place] = Documents(*set_).find(pairs_[static_cast<size_t>(index)].document, field);
  std::vector<int32_t> tokens(static_cast<size_t>(place.end - place.begin));
  shard.read(place.begin, tokens);
  return tokens;
}

int32_t ParallelTokens::begin() const {
  return set_->header().begin.value_or(separator());
}

int32_t ParallelTokens::separator() const {
  return *set_->header().separator;
}

void ParallelTokens::read(int64_t index, const RandomView& /*view*/, const ExampleRow& row) const {
  // Places of the fields.
  constexpr size_t kSource = 0, kTarget = 2, kLabels = 3;
  const auto write = [&](size_t field, const std::vector<int32_t>& tokens) {
    const auto target = elements_of<int32_t>(row, field);
    const auto end = std::ranges::copy(tokens, target.begin()).out;
    std::fill(end, target.end(), set_->header().padding.value_or(0));
  };
  const auto write_length = [&](size_t field, const std::vector<int32_t>& tokens) {
    elements_of<int32_t>(row, field)[0] = static_cast<int32_t>(tokens.size());
  };
  std::vector<int32_t> text = tokens(index, 0), translation = tokens(index, 1);
  text.push_back(separator());
  write(kSource, text);
  write_length(kSource + 1, text);
  translation.push_back(separator());
  write(kLabels, translation);
  write_length(kLabels + 1, translation);
  translation.pop_back();
  translation.insert(translation.begin(), begin());
  write(kTarget, translation);
}

std::vector<std::string> ParallelTokens::remarks() const {
  if (left_out_ == 0) return {};
  return {fmt::format("{} pairs of texts are longer than {} tokens and were left out", left_out_,
                      options_.lengths.back() - 1)};
}

}  // namespace tessera::data
