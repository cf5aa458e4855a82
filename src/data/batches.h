// What sources that count their batches share.
#pragma once

#include <memory>
#include <vector>

#include "tessera/data/source.h"

namespace tessera::data {

inline constexpr const char* kBatch = "batch";  // the symbol of the first axis

// Of `size` examples in batches of `batch_size` over all ranks.
int64_t batches_of(int64_t size, int64_t batch_size, bool drop_last);

// Whether example number `place` is among those held out, evenly spread: where the share of the examples
// before it reaches another whole number.
bool is_held_out(int64_t place, double share);

// How many batches the epoch has for each rank. Throws Error(invalid_argument) when there is no such rank or
// no such place.
int64_t batches_from(const Source& source, const Cursor& from, const Partition& partition);

// In which order an epoch visits its examples.
std::vector<int64_t> epoch_order(int64_t size, bool shuffle, uint64_t seed, int64_t epoch);

// The batch of that number, without its fields.
Batch batch_without_fields(const std::vector<int64_t>& order, int64_t batch_size, int64_t epoch,
                           int64_t number, const Partition& partition);

// In that memory, with undefined contents; null: in any, zeros.
Tensor batch_tensor(const BatchMemory* memory, DataType type, const Shape& shape);

}  // namespace tessera::data
