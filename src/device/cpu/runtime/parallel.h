// Division of work among OpenMP's threads: by parts, where who does what depends on the number of threads
// alone, so that sums added part by part are the same at every run; or by blocks, which whoever is ready
// takes.
#pragma once

#include <algorithm>
#include <array>
#include <atomic>
#include <cstdint>

#include <omp.h>

#include "device/cpu/runtime/parallel_region.h"

namespace tessera::cpu {

// Below this many elements per thread, starting threads costs more than they save.
inline constexpr int64_t kElementsPerThread = 1 << 14;

inline int64_t part_count(int64_t elements) {
  return std::clamp<int64_t>(elements / kElementsPerThread, 1, omp_get_max_threads());
}

// Calls function(part, begin, end) for `parts` consecutive ranges of [0, count), in parallel.
template <typename Function>
void for_each_part(int64_t parts, int64_t count, Function&& function) {
  const auto run = [&](int64_t part) { function(part, count * part / parts, count * (part + 1) / parts); };
  if (parts == 1) return run(0);
  in_parallel(parts, [&](int64_t thread, int64_t threads) {
    for (int64_t part = parts * thread / threads; part < parts * (thread + 1) / threads; ++part) run(part);
  });
}

enum class Order : uint8_t { forwards, backwards };

// Calls function(thread, block) for each block of [0, count), in parallel. Each of `threads` begins with its
// own share of consecutive blocks, in the given order, and then takes what others have left, so that nobody
// waits long for one who was held up. `thread` names memory that no other call uses meanwhile; what is
// computed must not depend on it.
template <typename Function>
void for_each_block(int64_t threads, int64_t count, Order order, Function&& function) {
  // How many blocks of each share are taken; a cache line each. Beyond so many threads some share theirs.
  struct alignas(64) Taken {
    std::atomic<int64_t> blocks = 0;
  };
  constexpr int64_t kMostShares = 64;
  std::array<Taken, kMostShares> taken;
  const int64_t shares = std::min(threads, kMostShares);
  const auto work = [&](int64_t thread) {
    for (int64_t i = 0; i < shares; ++i) {
      const int64_t share = (thread + i) % shares;
      const int64_t begin = count * share / shares;
      const int64_t end = count * (share + 1) / shares;
      std::atomic<int64_t>& next = taken[static_cast<size_t>(share)].blocks;
      // Relaxed: that no other takes the same block is all that is asked.
      const auto take = [&] { return next.fetch_add(1, std::memory_order_relaxed); };
      for (int64_t block = take(); block < end - begin; block = take())
        function(thread, order == Order::forwards ? begin + block : end - 1 - block);
    }
  };
  if (threads == 1) return work(0);
  in_parallel(threads, [&](int64_t thread, int64_t) { work(thread); });
}

}  // namespace tessera::cpu
