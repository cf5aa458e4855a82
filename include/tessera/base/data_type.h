// Element types of tensors: all numeric types of ONNX.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <iterator>
#include <string_view>

#include "tessera/base/half.h"

namespace tessera {

enum class DataType : uint8_t {
  fp32,
  fp64,
  fp16,
  bf16,
  int8,
  uint8,
  int32,
  int64,
  boolean,
  int16,
  uint16,
  uint32,
  uint64,
  fp8_e4m3fn,
  fp8_e4m3fnuz,
  fp8_e5m2,
  fp8_e5m2fnuz,
  fp8_e8m0,
  fp4_e2m1,
  int4,
  uint4,
  int2,
  uint2,
  complex64,
  complex128,
};

enum class TypeKind : uint8_t { floating, signed_integer, unsigned_integer, boolean, complex };

// What is known of a type, whoever asks.
struct TypeTraits {
  DataType type;
  std::string_view name;  // the spelling of the graph text, the recipes and the command line
  int bits;               // of one element; below 8 several elements share a byte
  TypeKind kind;
  // Binary digits that a value is rounded to, the implicit one among them; of a complex number's parts. Of
  // integers all that are no sign.
  int digits;
  double lowest;  // finite; of a complex number's parts
  double highest;
};

// In the order of the enumeration.
inline constexpr TypeTraits kTypeTraits[] = {
    {DataType::fp32, "fp32", 32, TypeKind::floating, 24, -0x1.fffffep127, 0x1.fffffep127},
    {DataType::fp64, "fp64", 64, TypeKind::floating, 53, -0x1.fffffffffffffp1023, 0x1.fffffffffffffp1023},
    {DataType::fp16, "fp16", 16, TypeKind::floating, 11, -65504, 65504},
    {DataType::bf16, "bf16", 16, TypeKind::floating, 8, -0x1.fep127, 0x1.fep127},
    {DataType::int8, "int8", 8, TypeKind::signed_integer, 7, -0x1p7, 0x1p7 - 1},
    {DataType::uint8, "uint8", 8, TypeKind::unsigned_integer, 8, 0, 0x1p8 - 1},
    {DataType::int32, "int32", 32, TypeKind::signed_integer, 31, -0x1p31, 0x1p31 - 1},
    {DataType::int64, "int64", 64, TypeKind::signed_integer, 63, -0x1p63, 0x1p63},  // rounded up
    {DataType::boolean, "bool", 8, TypeKind::boolean, 1, 0, 1},
    {DataType::int16, "int16", 16, TypeKind::signed_integer, 15, -0x1p15, 0x1p15 - 1},
    {DataType::uint16, "uint16", 16, TypeKind::unsigned_integer, 16, 0, 0x1p16 - 1},
    {DataType::uint32, "uint32", 32, TypeKind::unsigned_integer, 32, 0, 0x1p32 - 1},
    {DataType::uint64, "uint64", 64, TypeKind::unsigned_integer, 64, 0, 0x1p64},  // rounded up
    {DataType::fp8_e4m3fn, "fp8_e4m3fn", 8, TypeKind::floating, 4, -448, 448},
    {DataType::fp8_e4m3fnuz, "fp8_e4m3fnuz", 8, TypeKind::floating, 4, -240, 240},
    {DataType::fp8_e5m2, "fp8_e5m2", 8, TypeKind::floating, 3, -57344, 57344},
    {DataType::fp8_e5m2fnuz, "fp8_e5m2fnuz", 8, TypeKind::floating, 3, -57344, 57344},
    {DataType::fp8_e8m0, "fp8_e8m0", 8, TypeKind::floating, 1, 0x1p-127, 0x1p127},
    {DataType::fp4_e2m1, "fp4_e2m1", 4, TypeKind::floating, 2, -6, 6},
    {DataType::int4, "int4", 4, TypeKind::signed_integer, 3, -8, 7},
    {DataType::uint4, "uint4", 4, TypeKind::unsigned_integer, 4, 0, 15},
    {DataType::int2, "int2", 2, TypeKind::signed_integer, 1, -2, 1},
    {DataType::uint2, "uint2", 2, TypeKind::unsigned_integer, 2, 0, 3},
    {DataType::complex64, "complex64", 64, TypeKind::complex, 24, -0x1.fffffep127, 0x1.fffffep127},
    {DataType::complex128, "complex128", 128, TypeKind::complex, 53, -0x1.fffffffffffffp1023,
     0x1.fffffffffffffp1023},
};

constexpr const TypeTraits& traits_of(DataType type) {
  return kTypeTraits[static_cast<size_t>(type)];
}

inline constexpr auto kAllDataTypes = [] {
  std::array<DataType, std::size(kTypeTraits)> types{};
  for (size_t i = 0; i < types.size(); ++i) types[i] = kTypeTraits[i].type;
  return types;
}();

// "fp32", "bf16", "int8", "bool", ...
constexpr std::string_view to_string(DataType type) {
  return traits_of(type).name;
}

// The inverse of to_string. Throws Error(invalid_argument) that lists the legal names.
DataType parse_data_type(std::string_view text);

constexpr int bits_of(DataType type) {
  return traits_of(type).bits;
}

// Whether several elements share a byte: the first in the lowest bits, as in ONNX.
constexpr bool is_packed(DataType type) {
  return bits_of(type) < 8;
}

// Of so many elements that lie together, rounded up to whole bytes.
constexpr int64_t bytes_of(DataType type, int64_t elements) {
  const int bits = bits_of(type);
  return bits < 8 ? (elements + 8 / bits - 1) / (8 / bits) : elements * (bits / 8);
}

// Bytes of one element; booleans take one byte. Throws Error(invalid_argument) of packed types: who asks
// counts elements in bytes.
size_t size_of(DataType type);

constexpr bool is_floating(DataType type) {
  return traits_of(type).kind == TypeKind::floating;
}
// Signed or unsigned, not boolean.
constexpr bool is_integer(DataType type) {
  return traits_of(type).kind == TypeKind::signed_integer ||
         traits_of(type).kind == TypeKind::unsigned_integer;
}
constexpr bool is_complex(DataType type) {
  return traits_of(type).kind == TypeKind::complex;
}
// The two 16-bit floating types, which are computed in fp32.
constexpr bool is_half(DataType type) {
  return type == DataType::fp16 || type == DataType::bf16;
}

// The DataType of a C++ type that stores one element: of those that operators compute in.
template <typename T>
struct DataTypeOf;
template <>
struct DataTypeOf<float> {
  static constexpr DataType value = DataType::fp32;
};
template <>
struct DataTypeOf<double> {
  static constexpr DataType value = DataType::fp64;
};
template <>
struct DataTypeOf<Float16> {
  static constexpr DataType value = DataType::fp16;
};
template <>
struct DataTypeOf<BFloat16> {
  static constexpr DataType value = DataType::bf16;
};
template <>
struct DataTypeOf<int8_t> {
  static constexpr DataType value = DataType::int8;
};
template <>
struct DataTypeOf<uint8_t> {
  static constexpr DataType value = DataType::uint8;
};
template <>
struct DataTypeOf<int16_t> {
  static constexpr DataType value = DataType::int16;
};
template <>
struct DataTypeOf<uint16_t> {
  static constexpr DataType value = DataType::uint16;
};
template <>
struct DataTypeOf<int32_t> {
  static constexpr DataType value = DataType::int32;
};
template <>
struct DataTypeOf<uint32_t> {
  static constexpr DataType value = DataType::uint32;
};
template <>
struct DataTypeOf<int64_t> {
  static constexpr DataType value = DataType::int64;
};
template <>
struct DataTypeOf<uint64_t> {
  static constexpr DataType value = DataType::uint64;
};
template <>
struct DataTypeOf<bool> {
  static constexpr DataType value = DataType::boolean;
};

// Throws Error(invalid_argument): the type has no C++ type to compute in.
[[noreturn]] void fail_not_computed(DataType type);

// Calls function.template operator()<T>() with the C++ type that stores one element. Throws
// Error(invalid_argument) of types narrower than 8 bits, 8-bit floating and complex ones, in which nothing is
// computed.
template <typename Function>
decltype(auto) dispatch(DataType type, Function&& function) {
  switch (type) {
    case DataType::fp32:
      return function.template operator()<float>();
    case DataType::fp64:
      return function.template operator()<double>();
    case DataType::fp16:
      return function.template operator()<Float16>();
    case DataType::bf16:
      return function.template operator()<BFloat16>();
    case DataType::int8:
      return function.template operator()<int8_t>();
    case DataType::uint8:
      return function.template operator()<uint8_t>();
    case DataType::int16:
      return function.template operator()<int16_t>();
    case DataType::uint16:
      return function.template operator()<uint16_t>();
    case DataType::int32:
      return function.template operator()<int32_t>();
    case DataType::uint32:
      return function.template operator()<uint32_t>();
    case DataType::int64:
      return function.template operator()<int64_t>();
    case DataType::uint64:
      return function.template operator()<uint64_t>();
    case DataType::boolean:
      return function.template operator()<bool>();
    default:
      fail_not_computed(type);
  }
}

}  // namespace tessera
