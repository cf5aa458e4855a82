// Static division of work among OpenMP's threads: who does what depends on the number of threads alone, so
// that sums added part by part are the same at every run.
#pragma once

#include <algorithm>
#include <cstdint>

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

}  // namespace tessera::cpu
