// Which neighbors are joined, of words that are sequences of symbols.
#pragma once

#include <cstdint>
#include <functional>
#include <utility>
#include <vector>

namespace tessera::text {

struct CountedWord {
  std::vector<uint32_t> symbols;
  int64_t count = 0;
};

using SymbolPair = std::pair<uint32_t, uint32_t>;

// Joins the pair that is met most often, of equal ones the one of lower ids, until no pair is met `minimum`
// times or `join`, which gives the id of what a pair becomes, gives none. The pairs in their order.
std::vector<SymbolPair> learn_merges(std::vector<CountedWord> words, int64_t minimum,
                                     const std::function<int64_t(SymbolPair)>& join);

}  // namespace tessera::text
