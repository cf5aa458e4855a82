#include "tessera/data/order.h"

#include <cstddef>
#include <numeric>
#include <utility>

#include "tessera/base/random.h"

namespace tessera::data {

std::vector<int64_t> shuffled_order(int64_t size, uint64_t seed, uint64_t epoch) {
  std::vector<int64_t> order = sequential_order(size);
  const Random random(seed ^ hash_name("shuffle", 7), epoch);
  for (size_t i = order.size(); i > 1; --i) std::swap(order[i - 1], order[random.below(i, i)]);
  return order;
}

std::vector<int64_t> sequential_order(int64_t size) {
  std::vector<int64_t> order(static_cast<size_t>(size));
  std::iota(order.begin(), order.end(), int64_t{0});
  return order;
}

}  // namespace tessera::data
