#include "data/tokens/joined_tokens.h"

#include <algorithm>

#include "tessera/base/error.h"

namespace tessera::data {

JoinedTokens::JoinedTokens(const TokenSet& set, std::optional<int32_t> separator)
    : set_(set), separator_(separator) {
  for (const TokenShard& shard : set.shards())
    begins_.push_back(begins_.back() + shard.tokens() + separators() * shard.documents());
}

int64_t JoinedTokens::document_at(const TokenShard& shard, int64_t place) const {
  int64_t low = 0;
  int64_t high = shard.documents();
  while (high - low > 1) {
    const int64_t middle = low + (high - low) / 2;
    const bool before = shard.place(middle).begin + separators() * middle <= place;
    (before ? low : high) = middle;
  }
  return low;
}

int64_t JoinedTokens::read_of(const TokenShard& shard, int64_t place, std::span<int32_t> tokens) const {
  int64_t done = 0;
  const auto wanted = std::ssize(tokens);
  for (int64_t document = document_at(shard, place); document < shard.documents() && done < wanted;
       ++document) {
    const TokenShard::Place bounds = shard.place(document);
    const int64_t begin = place + done - separators() * document;  // among the shard's tokens
    const int64_t count = std::clamp<int64_t>(bounds.end - begin, 0, wanted - done);
    shard.read(begin, tokens.subspan(static_cast<size_t>(done), static_cast<size_t>(count)));
    done += count;
    const bool at_end = begin + count >= bounds.end;
    if (separator_ && at_end && done < wanted) tokens[static_cast<size_t>(done++)] = *separator_;
  }
  return done;
}

void JoinedTokens::read(int64_t begin, std::span<int32_t> tokens) const {
  auto shard =
      static_cast<size_t>(std::upper_bound(begins_.begin(), begins_.end(), begin) - begins_.begin() - 1);
  while (!tokens.empty() && shard < set_.shards().size()) {
    const int64_t done = read_of(set_.shards()[shard], begin - begins_[shard], tokens);
    tokens = tokens.subspan(static_cast<size_t>(done));
    begin = begins_[++shard];
  }
  require(tokens.empty(), ErrorCode::invalid_file,
          "the shards hold {} tokens less than they say; a file is damaged", tokens.size());
}

}  // namespace tessera::data
