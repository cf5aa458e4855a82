// Floating formats of eight bits and fewer, as they are stored. Arithmetic happens in float.
//   e4m3fn, e5m2: OCP 8-bit Floating Point Specification (OFP8), revision 1.0
//   e4m3fnuz, e5m2fnuz: Noune et al. 2022, "8-bit Numerical Formats for Deep Neural Networks"
//   e2m1, e8m0: OCP Microscaling Formats (MX), revision 1.0
#pragma once

#include <array>
#include <bit>
#include <cstdint>

#include "tessera/base/data_type.h"

namespace tessera {

constexpr bool is_narrow_float(DataType type) {
  return is_floating(type) && bits_of(type) <= 8;
}

// A sign, an exponent and a fraction. The least exponent holds 0 and the subnormal numbers.
struct NarrowFormat {
  int exponent_bits;
  int fraction_bits;
  int bias;
  uint8_t highest;  // code of the largest finite number
  // Codes without sign; what has none takes the highest number for infinity, and -0 for NaN.
  uint8_t infinity = 0;
  uint8_t nan = 0;
  bool negative_zero = true;  // where there is none its code is the only NaN, whatever the sign
};

constexpr NarrowFormat narrow_format(DataType type) {
  switch (type) {
    case DataType::fp8_e4m3fn:
      return {4, 3, 7, 0x7e, 0x7f, 0x7f};
    case DataType::fp8_e4m3fnuz:
      return {4, 3, 8, 0x7f, 0x80, 0x80, false};
    case DataType::fp8_e5m2:
      return {5, 2, 15, 0x7b, 0x7c, 0x7e};
    case DataType::fp8_e5m2fnuz:
      return {5, 2, 16, 0x7f, 0x80, 0x80, false};
    default:
      return {2, 1, 1, 0x7, 0x7, 0x8};  // fp4_e2m1
  }
}

// The power of two that is nearest to the magnitude, the greater one of two: bits of its exponent, 255 for
// what is not finite. As ONNX's reference has it, that sign does not count, 0 is the least power, and what
// lies between the two least ones becomes the greater.
constexpr uint8_t encode_power_of_two(float value, bool saturate) {
  const uint32_t magnitude = std::bit_cast<uint32_t>(value) & 0x7fffffffu;
  const uint32_t exponent = magnitude >> 23;
  const uint32_t fraction = magnitude & 0x7fffffu;
  if (exponent == 0xffu) return 0xff;
  const bool up = fraction > 0x400000u || (fraction == 0x400000u && exponent > 0);
  const uint32_t rounded = exponent + (up ? 1 : 0);
  return static_cast<uint8_t>(rounded == 0xffu && saturate ? 0xfeu : rounded);
}

// Rounded to nearest even. Beyond the limits: the highest number when saturating, infinity among it, else the
// format's infinity, or NaN where it has none.
constexpr uint8_t encode_narrow(DataType type, float value, bool saturate) {
  if (type == DataType::fp8_e8m0) return encode_power_of_two(value, saturate);
  const NarrowFormat format = narrow_format(type);
  const uint32_t word = std::bit_cast<uint32_t>(value);
  const uint32_t magnitude = word & 0x7fffffffu;
  const auto sign = static_cast<uint8_t>((word >> 31) << (format.exponent_bits + format.fraction_bits));
  const auto with_sign = [&](uint32_t code) -> uint8_t {
    if (!format.negative_zero && (code == 0 || code == format.nan)) return static_cast<uint8_t>(code);
    return static_cast<uint8_t>(code | sign);
  };
  if (magnitude > 0x7f800000u) return with_sign(format.nan);
  const uint8_t beyond = with_sign(saturate ? format.highest : format.infinity);
  if (magnitude == 0x7f800000u) return beyond;
  const auto exponent = static_cast<int>(magnitude >> 23) - 127;
  const int least = 1 - format.bias;
  // The digits of the number in units of its last place, below the least exponent in those of that.
  const uint32_t digits = (magnitude & 0x7fffffu) | (exponent == -127 ? 0u : 0x800000u);
  const int dropped = 23 - format.fraction_bits + (exponent < least ? least - exponent : 0);
  if (dropped > 24) return with_sign(0);  // less than half of the least number
  const uint32_t half = (1u << (dropped - 1)) - 1 + ((digits >> dropped) & 1u);
  const uint32_t rounded = (digits + half) >> dropped;
  const auto above = static_cast<uint32_t>((exponent < least ? least : exponent) - least);
  const uint32_t code = (above << format.fraction_bits) + rounded;
  return code > format.highest ? beyond : with_sign(code);
}

constexpr float decode_narrow(DataType type, uint8_t code) {
  constexpr float kNan = std::bit_cast<float>(0x7fc00000u);
  if (type == DataType::fp8_e8m0) {
    if (code == 0xff) return kNan;
    return std::bit_cast<float>(code == 0 ? 0x400000u : static_cast<uint32_t>(code) << 23);
  }
  const NarrowFormat format = narrow_format(type);
  const int width = format.exponent_bits + format.fraction_bits;
  const uint32_t magnitude = code & ((1u << width) - 1u);
  const bool negative = ((code >> width) & 1u) != 0;
  if (!format.negative_zero && magnitude == 0 && negative) return kNan;
  const auto signed_bits = [&](uint32_t word) {
    return std::bit_cast<float>(word | (negative ? 0x80000000u : 0u));
  };
  if (magnitude > format.highest)
    return signed_bits(magnitude == format.infinity && format.infinity != format.nan ? 0x7f800000u
                                                                                     : 0x7fc00000u);
  // The fraction with the least exponent of float, which multiplication moves to where it belongs: exactly.
  const uint32_t exponent = magnitude >> format.fraction_bits;
  const uint32_t fraction = magnitude & ((1u << format.fraction_bits) - 1u);
  const uint32_t digits = fraction | (exponent == 0 ? 0u : 1u << format.fraction_bits);
  const int power = static_cast<int>(exponent == 0 ? 1 : exponent) - format.bias - format.fraction_bits;
  const float unit = std::bit_cast<float>(static_cast<uint32_t>(power + 127) << 23);
  return signed_bits(std::bit_cast<uint32_t>(static_cast<float>(digits) * unit));
}

// All numbers of a format by their codes.
constexpr std::array<float, 256> narrow_values(DataType type) {
  std::array<float, 256> values{};
  const size_t codes = size_t{1} << bits_of(type);
  for (size_t code = 0; code < codes; ++code) values[code] = decode_narrow(type, static_cast<uint8_t>(code));
  return values;
}

}  // namespace tessera
