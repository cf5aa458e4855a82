// Division of work among OpenMP's threads: by parts, where who does what depends on the number of threads
// alone, so that sums added part by part are the same at every run; or by blocks, which whoever is ready
// takes.
#pragma once

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <vector>

#include <omp.h>

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
#pragma omp parallel for num_threads(static_cast <int>(parts)) schedule(static)
  for (int64_t part = 0; part < parts; ++part) run(part);
}

enum class Order : uint8_t { forwards, backwards };

// Calls function(thread, block) for each block of [0, count), in parallel. Each of `threads` begins with its
// own share of consecutive blocks, in the given order, and then takes what others have left, so that nobody
// waits long for one who was held up. `thread` names memory that no other call uses meanwhile; what is
// computed must not depend on it.
template <typename Function>
void for_each_block(int64_t threads, int64_t count, Order order, Function&& function) {
  // A cache line each.
  struct alignas(64) Share {
    std::atomic<int64_t> next = 0;
    int64_t begin = 0;
    int64_t end = 0;
  };
  std::vector<Share> shares(static_cast<size_t>(threads));
  for (int64_t i = 0; i < threads; ++i) {
    shares[static_cast<size_t>(i)].begin = count * i / threads;
    shares[static_cast<size_t>(i)].end = count * (i + 1) / threads;
  }
  const auto work = [&](int64_t thread) {
    for (int64_t i = 0; i < threads; ++i) {
      Share& share = shares[static_cast<size_t>((thread + i) % threads)];
      const int64_t size = share.end - share.begin;
      for (int64_t taken = share.next++; taken < size; taken = share.next++)
        function(thread, order == Order::forwards ? share.begin + taken : share.end - 1 - taken);
    }
  };
  if (threads == 1) return work(0);
#pragma omp parallel num_threads(static_cast <int>(threads))
  work(omp_get_thread_num());
}

}  // namespace tessera::cpu
