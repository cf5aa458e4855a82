#include "data/tokens/token_pairs.h"

#include <algorithm>

#include "tessera/base/error.h"

namespace tessera::data {
namespace {

constexpr uint64_t kDraws = 4;  // for each row

// Where a piece of so many tokens is cut, by a draw: in its middle half, with a token on either side.
int64_t cut_of(int64_t tokens, const Random& random, uint64_t draw) {
  const int64_t least = std::max<int64_t>(1, tokens / 4);
  return least + static_cast<int64_t>(random.below(draw, static_cast<uint64_t>(tokens - 2 * least + 1)));
}

}  // namespace

TokenPairs::TokenPairs(const TokenSet& set, int64_t length, uint64_t seed)
    : set_(set), documents_(set), room_(length - kAround), seed_(seed ^ hash_name("pairs", 5)) {
  const auto code = ErrorCode::invalid_argument;
  require(set.header().fields == 1, code, "documents of two texts are no long text to take pairs from");
  require(set.header().begin && set.header().separator, code,
          "pairs of texts need a token that begins a row, such as [CLS], and a separator; the set has no {}",
          set.header().begin ? "separator" : "such beginning");
  require(room_ >= 2, code, "a row of {} tokens has no room for two texts", length);
  for (int64_t document = 0; document < documents_.size(); ++document) {
    const TokenShard::Place place = documents_.find(document).place;
    const int64_t tokens = place.end - place.begin;
    if (tokens > 0) filled_.push_back(document);
    first_rows_.push_back(first_rows_.back() + tokens / room_ + (tokens % room_ >= 2 ? 1 : 0));
  }
  require(filled_.size() >= 2, code, "pairs of texts need two documents at least, the set has {}",
          filled_.size());
}

TokenPairs::Piece TokenPairs::piece(int64_t row) const {
  const auto next = std::upper_bound(first_rows_.begin(), first_rows_.end(), row);
  const int64_t document = next - first_rows_.begin() - 1;
  const TokenShard::Place place = documents_.find(document).place;
  const int64_t begin = place.begin + room_ * (row - *std::prev(next));
  return {.document = document, .begin = begin, .tokens = std::min(room_, place.end - begin)};
}

int64_t TokenPairs::length(int64_t row) const {
  return piece(row).tokens + kAround;
}

void TokenPairs::read(int64_t row, int64_t epoch, const Row& target) const {
  const auto [document, begin, tokens] = piece(row);
  const TokenShard& shard = documents_.find(document).shard;

  const Random random(seed_, static_cast<uint64_t>(epoch));
  const uint64_t draw = kDraws * static_cast<uint64_t>(row);
  const int64_t first = cut_of(tokens, random, draw);
  *target.unrelated = random.below(draw + 1, 2) == 0 ? 0 : 1;

  const TokenSetHeader& header = set_.header();
  std::ranges::fill(target.tokens, header.padding.value_or(0));
  std::ranges::fill(target.segments, 0);
  const auto part = [&](int64_t from, int64_t count) {
    return target.tokens.subspan(static_cast<size_t>(from), static_cast<size_t>(count));
  };
  target.tokens.front() = *header.begin;
  shard.read(begin, part(1, first));
  part(first + 1, 1).front() = *header.separator;
  const std::span<int32_t> second = part(first + 2, tokens - first);
  if (*target.unrelated == 0) {
    shard.read(begin + first, second);
  } else {
    read_elsewhere(document, random, draw + 2, second);
  }
  part(tokens + 2, 1).front() = *header.separator;
  std::ranges::fill(target.segments.subspan(static_cast<size_t>(first + 2), second.size() + 1), 1);
  *target.length = static_cast<int32_t>(tokens + kAround);
}

void TokenPairs::read_elsewhere(int64_t document, const Random& random, uint64_t draw,
                                std::span<int32_t> tokens) const {
  const auto own = std::ranges::lower_bound(filled_, document) - filled_.begin();
  auto chosen = static_cast<int64_t>(random.below(draw, filled_.size() - 1));
  if (chosen >= own) ++chosen;
  const auto [shard, place] = documents_.find(filled_[static_cast<size_t>(chosen)]);
  const auto wanted = std::ssize(tokens);
  // The last place from which there are as many. Of a shard that has less they begin anew.
  const int64_t last = std::max<int64_t>(0, shard.tokens() - wanted);
  const auto drawn =
      static_cast<int64_t>(random.below(draw + 1, static_cast<uint64_t>(place.end - place.begin)));
  int64_t from = std::min(place.begin + drawn, last);
  for (int64_t done = 0; done < wanted; from = 0) {
    const int64_t count = std::min(wanted - done, shard.tokens() - from);
    shard.read(from, tokens.subspan(static_cast<size_t>(done), static_cast<size_t>(count)));
    done += count;
  }
}

}  // namespace tessera::data
