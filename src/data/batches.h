// What sources that count their batches share.
#pragma once

#include "tessera/data/source.h"

namespace tessera::data {

// Of `size` examples in batches of `batch_size` over all ranks.
int64_t batches_of(int64_t size, int64_t batch_size, bool drop_last);

// How many batches the epoch has for each rank. Throws Error(invalid_argument) when there is no such rank or
// no such place.
int64_t batches_from(const Source& source, const Cursor& from, const Partition& partition);

}  // namespace tessera::data
