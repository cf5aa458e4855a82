#include "tessera/compile/workspace.h"

namespace tessera {

void Workspace::reserve(int64_t bytes) {
  if (bytes <= bytes_) return;
  queue_->synchronize();
  // Not both at a time.
  memory_.reset();
  bytes_ = 0;
  memory_ = device_->allocate(bytes);
  bytes_ = bytes;
}

}  // namespace tessera
