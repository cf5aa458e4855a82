// Numbers as formats store them, whatever the processor.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

namespace tessera::data {

// Of all the bytes, eight at most, the lowest first.
inline uint64_t little_endian(std::span<const std::byte> bytes) {
  uint64_t value = 0;
  for (size_t i = bytes.size(); i-- > 0;) value = value << 8U | std::to_integer<uint64_t>(bytes[i]);
  return value;
}

}  // namespace tessera::data
