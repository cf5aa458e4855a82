#include "tasks/prefetch.h"

#include <algorithm>

namespace tessera::tasks {

Option prefetch_option() {
  return {.key = "prefetch",
          .value = int64_t{2},
          .documentation = "Batches prepared ahead of the network; 0: each when it is its turn",
          .limits = Limits::between(0, 1024),
          .resuming = Resuming::free};
}

Prefetch prefetch_of(const Options& settings) {
  const int64_t batches = settings.integer("data.prefetch");
  // Without any batch ahead, each is made by whoever wants it.
  return {.workers = batches > 0 ? 1 : 0, .batches = std::max<int64_t>(batches, 1)};
}

}  // namespace tessera::tasks
