// Copies between memory of several places and memory in one piece.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>

#include "tessera/compile/communicator.h"

namespace tessera::distribute {

inline void copy_bytes(void* to, const void* from, int64_t bytes) {
  if (bytes > 0 && to != from) std::memmove(to, from, static_cast<size_t>(bytes));
}

// Walks through parts as if they were one array.
class PartCursor {
 public:
  // `width`: bytes of an element.
  PartCursor(std::span<const ReducedPart> parts, int64_t width) : parts_(parts), width_(width) {}

  // The inputs' next so many elements.
  void read(int64_t elements, std::byte* to) {
    take(elements, [&](const ReducedPart& part, int64_t offset, int64_t bytes) {
      copy_bytes(to, static_cast<const std::byte*>(part.input) + offset, bytes);
      to += bytes;
    });
  }
  // The outputs'.
  void write(int64_t elements, const std::byte* from) {
    take(elements, [&](const ReducedPart& part, int64_t offset, int64_t bytes) {
      copy_bytes(static_cast<std::byte*>(part.output) + offset, from, bytes);
      from += bytes;
    });
  }

 private:
  // Calls copy(part, offset in bytes, bytes) for each piece.
  template <typename Copy>
  void take(int64_t elements, Copy&& copy) {
    while (elements > 0) {
      const ReducedPart& part = parts_[part_];
      const int64_t count = std::min(elements, part.elements - element_);
      if (count > 0) copy(part, element_ * width_, count * width_);
      elements -= count;
      element_ += count;
      if (element_ < part.elements) continue;
      ++part_;
      element_ = 0;
    }
  }

  std::span<const ReducedPart> parts_;
  int64_t width_;
  size_t part_ = 0;
  int64_t element_ = 0;
};

}  // namespace tessera::distribute
