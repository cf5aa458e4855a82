// How far batches are made ahead of the network: the key data.prefetch.
#pragma once

#include <cstdint>

#include "tessera/base/option.h"

namespace tessera::tasks {

struct Prefetch {
  int64_t workers = 1;
  int64_t batches = 1;
};

Option prefetch_option();
Prefetch prefetch_of(const Options& settings);

}  // namespace tessera::tasks
