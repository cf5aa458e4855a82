// Uniform random numbers, eight Philox blocks at a time so that the rounds vectorise.
#include "device/cpu/cluster_loops.h"

namespace tessera::cpu {

void random_uniform(const Random& random, int bits, uint64_t first, float* out, int64_t n) {
  int64_t done = 0;
  const auto single = [&] {
    out[done] = uniform_of(random.word(first + static_cast<uint64_t>(done)), bits);
    ++done;
  };
  while (done < n && (first + static_cast<uint64_t>(done)) % 4 != 0) single();
  for (; done + 4 <= n; done += 4) {
    const auto words = random.block((first + static_cast<uint64_t>(done)) / 4);
    for (size_t k = 0; k < 4; ++k) out[done + static_cast<int64_t>(k)] = uniform_of(words[k], bits);
  }
  while (done < n) single();
}

}  // namespace tessera::cpu
