// Work on many things of which each stands for itself, by as many threads as the machine has processors.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>

namespace tessera {

// Calls work(i) for each 0 <= i < count, of several threads at once, until `stop` is set. What the work
// throws ends it: that of whichever call threw first is thrown here, when no other runs any more.
void for_each_in_parallel(int64_t count, const std::function<void(int64_t index)>& work,
                          const std::atomic<bool>* stop = nullptr);

}  // namespace tessera
