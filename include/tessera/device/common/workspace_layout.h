// Where a kernel's arrays lie in its workspace: laid out once, found at each run.
#pragma once

#include <cstddef>
#include <cstdint>

#include "tessera/base/rounding.h"
#include "tessera/compile/kernel.h"

namespace tessera::backend {

template <typename Element>
class WorkspaceArray {
 public:
  Element* in(void* workspace) const {
    return reinterpret_cast<Element*>(static_cast<std::byte*>(workspace) + offset_);
  }
  bool operator==(const WorkspaceArray&) const = default;

 private:
  friend class WorkspaceLayout;
  int64_t offset_ = 0;  // in bytes
};

// Every array begins as aligned as the workspace.
class WorkspaceLayout {
 public:
  static constexpr int64_t kAlignment = 256;  // a multiple of every Device::memory_alignment()

  template <typename Element>
  WorkspaceArray<Element> book(int64_t elements) {
    WorkspaceArray<Element> array;
    array.offset_ = bytes_;
    bytes_ += round_up(elements * static_cast<int64_t>(sizeof(Element)), kAlignment);
    return array;
  }
  int64_t bytes() const { return bytes_; }

 private:
  int64_t bytes_ = 0;
};

}  // namespace tessera::backend
