// Batches of texts of different lengths that hold nearly the same number of tokens, whichever texts they are.
#pragma once

#include <cstdint>
#include <vector>

namespace tessera::data {

// The texts, ordered by length, are cut into as many strata as a batch has texts; every batch takes one text
// of each, in an order that is drawn anew within each stratum. So the longest texts of all strata bound what
// a batch holds, and are together at most one longest text more than a mean batch.
//
// Several ranks share strata as they share batches: of each `ranks` neighboring strata every rank has one.
// One process has the batches that any power of two of ranks have together, text by text; those of other
// numbers of ranks hold the same texts in another order.
class EvenBatches {
 public:
  // Of texts of these lengths, in batches of `size` on each rank. There are as many texts at least.
  EvenBatches(std::vector<int64_t> lengths, int64_t size);

  // Of a rank's batch at most, whatever the number of ranks.
  int64_t most_tokens() const;
  // The texts of an epoch, batch by batch, and in a batch rank by rank. `texts`: all of them in the order in
  // which each stratum gives its own. What does not fill a batch of all ranks is left out.
  std::vector<int64_t> order(const std::vector<int64_t>& texts, int64_t ranks) const;

 private:
  int64_t count() const { return static_cast<int64_t>(by_length_.size()); }

  std::vector<int64_t> lengths_;
  std::vector<int64_t> by_length_;  // texts, the shortest first
  int64_t size_;
};

}  // namespace tessera::data
