// Element types of tensors.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>

#include "tessera/base/half.h"

namespace tessera {

enum class DataType : uint8_t { fp32, fp64, fp16, bf16, int8, uint8, int32, int64, boolean };

inline constexpr DataType kAllDataTypes[] = {DataType::fp32,  DataType::fp64,  DataType::fp16,
                                             DataType::bf16,  DataType::int8,  DataType::uint8,
                                             DataType::int32, DataType::int64, DataType::boolean};

// "fp32", "bf16", "int8", "bool", ...: the spelling of the graph text, the recipes and the command line.
std::string_view to_string(DataType type);

// The inverse of to_string. Throws Error(invalid_argument) that lists the legal names.
DataType parse_data_type(std::string_view text);

// Bytes of one element; booleans take one byte.
size_t size_of(DataType type);

bool is_floating(DataType type);
bool is_integer(DataType type);  // signed or unsigned, not boolean

// The C++ type that stores one element of each DataType, and back.
template <DataType type>
struct Storage;
template <>
struct Storage<DataType::fp32> {
  using type = float;
};
template <>
struct Storage<DataType::fp64> {
  using type = double;
};
template <>
struct Storage<DataType::fp16> {
  using type = Float16;
};
template <>
struct Storage<DataType::bf16> {
  using type = BFloat16;
};
template <>
struct Storage<DataType::int8> {
  using type = int8_t;
};
template <>
struct Storage<DataType::uint8> {
  using type = uint8_t;
};
template <>
struct Storage<DataType::int32> {
  using type = int32_t;
};
template <>
struct Storage<DataType::int64> {
  using type = int64_t;
};
template <>
struct Storage<DataType::boolean> {
  using type = bool;
};

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
struct DataTypeOf<int32_t> {
  static constexpr DataType value = DataType::int32;
};
template <>
struct DataTypeOf<int64_t> {
  static constexpr DataType value = DataType::int64;
};
template <>
struct DataTypeOf<bool> {
  static constexpr DataType value = DataType::boolean;
};

// Calls function.template operator()<T>() with the storage type of `type`.
template <typename Function>
decltype(auto) dispatch(DataType type, Function&& function) {
  switch (type) {
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
    case DataType::int32:
      return function.template operator()<int32_t>();
    case DataType::int64:
      return function.template operator()<int64_t>();
    case DataType::boolean:
      return function.template operator()<bool>();
    case DataType::fp32:
      break;
  }
  return function.template operator()<float>();
}

}  // namespace tessera
