// The documents of a set by their number, whichever shards they are in.
#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

#include "tessera/data/token_shards.h"

namespace tessera::data {

class Documents {
 public:
  // The set outlives this.
  explicit Documents(const TokenSet& set) : set_(set) {
    for (const TokenShard& shard : set.shards()) first_.push_back(first_.back() + shard.documents());
  }

  int64_t size() const { return first_.back(); }

  struct Found {
    const TokenShard& shard;
    TokenShard::Place place;  // of the field, among the shard's tokens
  };
  // There is such a document. Throws as TokenShard::place().
  Found find(int64_t document, int64_t field = 0) const {
    const auto next = std::upper_bound(first_.begin(), first_.end(), document);
    const auto number = static_cast<size_t>(next - first_.begin() - 1);
    const TokenShard& shard = set_.shards()[number];
    return {shard, shard.place(document - first_[number], field)};
  }

 private:
  const TokenSet& set_;
  std::vector<int64_t> first_ = {0};  // document of each shard, and the end
};

}  // namespace tessera::data
