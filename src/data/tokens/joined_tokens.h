// The documents of a set as one long text.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "tessera/data/token_shards.h"

namespace tessera::data {

class JoinedTokens {
 public:
  // After each document stands `separator`, if any. The set has one field and outlives this.
  JoinedTokens(const TokenSet& set, std::optional<int32_t> separator);

  int64_t size() const { return begins_.back(); }
  // From `begin` on. There are so many.
  void read(int64_t begin, std::span<int32_t> tokens) const;

 private:
  int64_t separators() const { return separator_ ? 1 : 0; }
  // Which document of a shard holds that place of its joined text.
  int64_t document_at(const TokenShard& shard, int64_t place) const;
  // As many as the shard has; how many there were.
  int64_t read_of(const TokenShard& shard, int64_t place, std::span<int32_t> tokens) const;

  const TokenSet& set_;
  std::optional<int32_t> separator_;
  std::vector<int64_t> begins_ = {0};  // of each shard, and the end
};

}  // namespace tessera::data
