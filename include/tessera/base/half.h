// The two 16-bit floating-point formats as storage types; arithmetic happens in float.
#pragma once

#include <bit>
#include <cstdint>

namespace tessera {

// IEEE 754 binary16. Conversion from float rounds to nearest even; overflow becomes infinity.
struct Float16 {
  uint16_t bits = 0;
  Float16() = default;
  explicit Float16(float value);
  explicit operator float() const;
};

// The upper half of a binary32. Conversion from float rounds to nearest even and keeps NaN a NaN.
struct BFloat16 {
  uint16_t bits = 0;
  BFloat16() = default;
  explicit BFloat16(float value) {
    const uint32_t word = std::bit_cast<uint32_t>(value);
    const bool is_nan = (word & 0x7fffffffu) > 0x7f800000u;
    bits =
        static_cast<uint16_t>(is_nan ? (word >> 16) | 0x40u : (word + 0x7fffu + ((word >> 16) & 1u)) >> 16);
  }
  explicit operator float() const { return std::bit_cast<float>(static_cast<uint32_t>(bits) << 16); }
};

}  // namespace tessera
