// The order in which an epoch visits the examples.
#pragma once

#include <cstdint>
#include <vector>

namespace tessera::data {

// A uniformly random permutation of 0 ... size-1 that depends only on its arguments: Fisher-Yates driven by
// Philox under (seed, epoch). Resuming in the middle of an epoch is making it anew and starting further on;
// it takes about 50 ms and 8 MB per million examples, and no state has to be saved.
std::vector<int64_t> shuffled_order(int64_t size, uint64_t seed, uint64_t epoch);

// 0 ... size-1.
std::vector<int64_t> sequential_order(int64_t size);

}  // namespace tessera::data
