#include "tessera/base/elements.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>
#include <limits>
#include <type_traits>

#include "tessera/base/error.h"
#include "tessera/base/narrow_float.h"

namespace tessera {
namespace {

__extension__ using Wide = __int128;  // holds every integer of int64 and uint64

// The bits of an element of at most a byte.
uint8_t load_bits(DataType type, const void* memory, int64_t index) {
  const auto* bytes = static_cast<const uint8_t*>(memory);
  const int bits = bits_of(type);
  if (bits == 8) return bytes[index];
  const int64_t in_byte = 8 / bits;
  const auto shift = static_cast<int>(index % in_byte) * bits;
  return static_cast<uint8_t>((bytes[index / in_byte] >> shift) & ((1 << bits) - 1));
}

void store_bits(DataType type, void* memory, int64_t index, uint8_t code) {
  auto* bytes = static_cast<uint8_t*>(memory);
  const int bits = bits_of(type);
  if (bits == 8) {
    bytes[index] = code;
    return;
  }
  const int64_t in_byte = 8 / bits;
  const auto shift = static_cast<int>(index % in_byte) * bits;
  const int mask = ((1 << bits) - 1) << shift;
  uint8_t& byte = bytes[index / in_byte];
  byte = static_cast<uint8_t>((byte & ~mask) | ((code << shift) & mask));
}

int8_t packed_integer(DataType type, uint8_t code) {
  const int highest = 1 << (bits_of(type) - 1);
  const bool negative = traits_of(type).kind == TypeKind::signed_integer && (code & highest) != 0;
  return static_cast<int8_t>(negative ? code - 2 * highest : code);
}

template <typename T>
double load_as(const void* memory, int64_t index) {
  const T value = static_cast<const T*>(memory)[index];
  if constexpr (std::is_same_v<T, Float16> || std::is_same_v<T, BFloat16>) {
    return static_cast<float>(value);
  } else {
    return static_cast<double>(value);
  }
}

// Saturating, so that every double has a defined result.
template <typename T>
T to_integer(double value) {
  constexpr auto kLow = static_cast<double>(std::numeric_limits<T>::min());
  constexpr auto kHigh = static_cast<double>(std::numeric_limits<T>::max());
  if (std::isnan(value)) return 0;
  if (value <= kLow) return std::numeric_limits<T>::min();
  return value >= kHigh ? std::numeric_limits<T>::max() : static_cast<T>(value);
}

template <typename T>
void store_as(void* memory, int64_t index, double value) {
  T& target = static_cast<T*>(memory)[index];
  if constexpr (std::is_same_v<T, bool>) {
    target = value != 0;
  } else if constexpr (std::is_integral_v<T>) {
    target = to_integer<T>(value);
  } else if constexpr (std::is_same_v<T, Float16> || std::is_same_v<T, BFloat16>) {
    target = T(static_cast<float>(value));
  } else {
    target = static_cast<T>(value);
  }
}

Wide load_integer(DataType type, const void* memory, int64_t index) {
  if (is_packed(type)) return packed_integer(type, load_bits(type, memory, index));
  return dispatch(type, [&]<typename T>() -> Wide {
    if constexpr (std::is_integral_v<T>) return static_cast<const T*>(memory)[index];
    return 0;
  });
}

// Keeps the lowest bits.
void store_integer(DataType type, void* memory, int64_t index, Wide value) {
  if (is_packed(type)) return store_bits(type, memory, index, static_cast<uint8_t>(value));
  dispatch(type, [&]<typename T>() {
    if constexpr (std::is_same_v<T, bool>) {
      static_cast<T*>(memory)[index] = value != 0;
    } else if constexpr (std::is_integral_v<T>) {
      static_cast<T*>(memory)[index] = static_cast<T>(value);
    }
  });
}

Wide lowest_integer(DataType type) {
  const bool is_signed = traits_of(type).kind == TypeKind::signed_integer;
  return is_signed ? -(Wide{1} << traits_of(type).digits) : Wide{0};
}

Wide highest_integer(DataType type) {
  return (Wide{1} << traits_of(type).digits) - 1;
}

void cast_integers(DataType from, const void* source, DataType to, void* target, int64_t count,
                   bool saturate) {
  const bool clamps = saturate && to != DataType::boolean;
  const Wide lowest = lowest_integer(to);
  const Wide highest = highest_integer(to);
  for (int64_t i = 0; i < count; ++i) {
    const Wide value = load_integer(from, source, i);
    store_integer(to, target, i, clamps ? std::clamp(value, lowest, highest) : value);
  }
}

bool is_whole(DataType type) {
  return is_integer(type) || type == DataType::boolean;
}

}  // namespace

void load_elements(DataType type, const void* memory, int64_t first, std::span<double> values) {
  require(!is_complex(type), ErrorCode::invalid_argument, "an element of {} is no single number",
          to_string(type));
  const auto load_all = [&](const auto& load) {
    for (double& value : values) value = load(first++);
  };
  if (is_narrow_float(type)) {
    load_all([&](int64_t index) { return decode_narrow(type, load_bits(type, memory, index)); });
  } else if (is_packed(type)) {
    load_all([&](int64_t index) { return packed_integer(type, load_bits(type, memory, index)); });
  } else {
    dispatch(type, [&]<typename T>() { load_all([&](int64_t index) { return load_as<T>(memory, index); }); });
  }
}

void store_elements(DataType type, void* memory, int64_t first, std::span<const double> values,
                    bool saturate) {
  const auto store_all = [&](const auto& store) {
    for (const double value : values) store(first++, value);
  };
  if (is_complex(type)) {
    const DataType part = type == DataType::complex64 ? DataType::fp32 : DataType::fp64;
    store_all([&](int64_t index, double value) {
      const double parts[] = {value, 0};
      store_elements(part, memory, 2 * index, parts, saturate);
    });
  } else if (is_narrow_float(type)) {
    store_all([&](int64_t index, double value) {
      store_bits(type, memory, index, encode_narrow(type, static_cast<float>(value), saturate));
    });
  } else if (is_packed(type)) {
    store_all([&](int64_t index, double value) {
      const double within = std::clamp(value, traits_of(type).lowest, traits_of(type).highest);
      store_bits(type, memory, index, static_cast<uint8_t>(to_integer<int8_t>(within)));
    });
  } else {
    dispatch(type, [&]<typename T>() {
      store_all([&](int64_t index, double value) { store_as<T>(memory, index, value); });
    });
  }
}

void cast_elements(DataType from, const void* source, DataType to, void* target, int64_t count,
                   bool saturate) {
  if (from == to) {
    if (count > 0) std::memcpy(target, source, static_cast<size_t>(bytes_of(from, count)));
    return;
  }
  require(!is_complex(from) && !is_complex(to), ErrorCode::invalid_argument, "{} is not cast to {}",
          to_string(from), to_string(to));
  if (is_whole(from) && is_whole(to)) return cast_integers(from, source, to, target, count, saturate);
  std::array<double, 256> chunk{};
  for (int64_t i = 0; i < count; i += std::ssize(chunk)) {
    const auto now = static_cast<size_t>(std::min<int64_t>(count - i, std::ssize(chunk)));
    const std::span values(chunk.data(), now);
    load_elements(from, source, i, values);
    store_elements(to, target, i, values, saturate);
  }
}

void copy_run(DataType type, const void* source, int64_t from, void* target, int64_t to, int64_t count) {
  if (is_packed(type)) {
    for (int64_t i = 0; i < count; ++i) store_bits(type, target, to + i, load_bits(type, source, from + i));
    return;
  }
  if (count == 0) return;
  const size_t bytes = size_of(type);
  std::memcpy(static_cast<char*>(target) + static_cast<size_t>(to) * bytes,
              static_cast<const char*>(source) + static_cast<size_t>(from) * bytes,
              static_cast<size_t>(count) * bytes);
}

}  // namespace tessera
