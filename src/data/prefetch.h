// Batches that threads make ahead of their consumer.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>

#include "tessera/data/source.h"

namespace tessera::data {

// Makes the batch of that number; of several threads at once.
using BatchMaker = std::function<Batch(int64_t number)>;

// Throws Error(invalid_argument) naming the option that is out of range.
void check_prefetch(int64_t workers, int64_t prefetch);

// Batches `first` to `end`, in order, the same whatever the number of workers; without any worker each is
// made when it is asked for. What the maker throws arrives in its batch's turn. At most max(prefetch,
// workers) batches are ready or being made.
std::unique_ptr<Stream> prefetched(BatchMaker make, int64_t first, int64_t end, int64_t workers,
                                   int64_t prefetch);

}  // namespace tessera::data
