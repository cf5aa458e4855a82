// Orders of axes.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace tessera {

// What undoes a permutation: where that puts axis permutation[i] at i, this puts i back.
inline std::vector<int64_t> inverse_permutation(const std::vector<int64_t>& permutation) {
  std::vector<int64_t> result(permutation.size());
  for (size_t i = 0; i < permutation.size(); ++i)
    result[static_cast<size_t>(permutation[i])] = static_cast<int64_t>(i);
  return result;
}

}  // namespace tessera
