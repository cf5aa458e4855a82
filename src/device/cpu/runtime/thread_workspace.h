// Scratch memory of which all threads share one piece, and each has another for itself.
#pragma once

#include <cstddef>

#include "tessera/device/common/workspace_layout.h"

namespace tessera::cpu {

struct ThreadWorkspace {
  backend::WorkspaceLayout shared;
  backend::WorkspaceLayout own;

  int64_t bytes(int64_t threads) const { return shared.bytes() + threads * own.bytes(); }
  void* own_of(void* workspace, int64_t thread) const {
    return static_cast<std::byte*>(workspace) + bytes(thread);
  }
};

}  // namespace tessera::cpu
