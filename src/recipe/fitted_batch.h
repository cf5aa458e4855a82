// The batch that fits the training data: an epoch is a whole number of updates, and few samples are left
// over.
#pragma once

#include <cstdint>
#include <string>

namespace tessera::recipe {

struct FittedBatch {
  int64_t batch = 0;     // samples of all ranks
  int64_t steps = 0;     // updates of an epoch
  int64_t left_out = 0;  // samples of an epoch that no update takes
};

// With the batches of all ranks being so many samples.
FittedBatch epoch_of(int64_t samples, int64_t batch, int64_t accumulate);

// Of at most `most` samples, the same number for each rank: the largest with which an epoch has as few
// updates as `most` allows where the last of them may be smaller. It is a multiple of 8 for each rank where
// less than a thousandth of the samples is left out so, and `most` itself where another would leave out as
// many. Throws Error(invalid_argument) where there are too few samples for one update.
FittedBatch fit_batch(int64_t samples, int64_t most, int64_t accumulate, int64_t ranks);

// "batch 256 -> 251: 239 updates in an epoch, 11 samples of which are left out"
std::string describe(const FittedBatch& fitted, int64_t most, const std::string& samples);

}  // namespace tessera::recipe
