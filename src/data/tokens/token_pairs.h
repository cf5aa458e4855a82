// Pairs of texts, of which the second follows the first or is any other: what tells a network whether two
// texts belong together (Devlin et al. 2019).
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "tessera/base/random.h"
#include "tessera/data/token_shards.h"

#include "data/tokens/documents.h"

namespace tessera::data {

// Every document is cut into pieces of as many tokens as a row has room for; a rest of one token is left out.
// In a row a piece is cut once more, somewhere in its middle half. In half of the rows its second part is
// replaced by as many tokens from somewhere else, which may run over the end of their document: where rows
// were shorter if their parts do not belong together, their lengths would tell it. All that is drawn depends
// on (seed, epoch, row) alone.
class TokenPairs {
 public:
  // begin, first text, separator, second text, separator.
  static constexpr int64_t kAround = 3;

  // The set outlives this. Throws Error(invalid_argument) where it has two fields, lacks `begin` or
  // `separator`, has less than two documents with tokens, or a row has no room for a pair.
  TokenPairs(const TokenSet& set, int64_t length, uint64_t seed);

  int64_t size() const { return first_rows_.back(); }
  // Tokens of a row that are no padding.
  int64_t length(int64_t row) const;

  // Of one row, by its place among all.
  struct Row {
    std::span<int32_t>
        tokens;  // as many as a row's length at least, filled up with the set's padding, or zeros
    std::span<int32_t> segments;   // as many: 1 for the second text and its separator
    int32_t* length = nullptr;     // what is no padding
    int32_t* unrelated = nullptr;  // 0: the second text follows the first
  };
  void read(int64_t row, int64_t epoch, const Row& target) const;

 private:
  struct Piece {
    int64_t document = 0;
    int64_t begin = 0;  // in its shard
    int64_t tokens = 0;
  };
  Piece piece(int64_t row) const;
  // Tokens from somewhere in another document on, by two draws.
  void read_elsewhere(int64_t document, const Random& random, uint64_t draw, std::span<int32_t> tokens) const;

  const TokenSet& set_;
  Documents documents_;
  int64_t room_;
  uint64_t seed_;
  std::vector<int64_t> first_rows_ = {0};  // of each document, and the end
  std::vector<int64_t> filled_;            // documents that have tokens
};

}  // namespace tessera::data
