// Conversions between memory and registers, between registers, and roundings in place.
#include "device/cpu/runtime/highway_targets.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "device/cpu/cluster/cluster_loops_convert.cpp"
#include <array>
#include <cmath>
#include <limits>
#include <type_traits>
#include <utility>

#include <hwy/foreach_target.h>
#include <hwy/highway.h>

#include "tessera/base/narrow_float.h"

#include "device/cpu/cluster/cluster_loop_tables.h"

HWY_BEFORE_NAMESPACE();
namespace tessera::cpu {
namespace HWY_NAMESPACE {
namespace {  // the structures of one name differ from file to file

namespace hn = hwy::HWY_NAMESPACE;

// F16C and later convert in hardware, to nearest even.
constexpr bool kHardwareFloat16 = HWY_TARGET == HWY_AVX2 || HWY_TARGET == HWY_AVX3;

// Saturating towards integers, with NaN as 0, as Tensor::set.
template <class To, class From>
HWY_INLINE To convert(From value) {
  if constexpr (std::is_same_v<To, bool>) {
    return value != From(0);
  } else if constexpr (std::is_same_v<To, From>) {
    return value;
  } else if constexpr (std::is_same_v<From, Float16> || std::is_same_v<From, BFloat16>) {
    return static_cast<To>(static_cast<float>(value));
  } else if constexpr (std::is_same_v<To, Float16> || std::is_same_v<To, BFloat16>) {
    return To(static_cast<float>(value));
  } else if constexpr (std::is_integral_v<To> && std::is_floating_point_v<From>) {
    constexpr auto kLow = static_cast<From>(std::numeric_limits<To>::min());
    constexpr auto kHigh =
        static_cast<From>(std::numeric_limits<To>::max());  // may round up: then >= catches
    if (value != value) return 0;
    if (value <= kLow) return std::numeric_limits<To>::min();
    return value >= kHigh ? std::numeric_limits<To>::max() : static_cast<To>(value);
  } else if constexpr (std::is_same_v<To, float> && std::is_same_v<From, int64_t>) {
    return static_cast<float>(static_cast<double>(value));  // rounds twice, as Tensor::cast
  } else if constexpr (std::is_integral_v<To> && sizeof(To) < sizeof(From)) {
    if (std::cmp_less(value, std::numeric_limits<To>::min())) return std::numeric_limits<To>::min();
    const bool beyond = std::cmp_greater(value, std::numeric_limits<To>::max());
    return beyond ? std::numeric_limits<To>::max() : static_cast<To>(value);
  } else {
    return static_cast<To>(value);
  }
}

template <class From, class To>
void convert_loop(void* out, const void* const* in, int64_t n) {
  const From* source = static_cast<const From*>(in[0]);
  To* target = static_cast<To*>(out);
  int64_t i = 0;
  if constexpr (kHardwareFloat16 && std::is_same_v<From, Float16> && std::is_same_v<To, float>) {
    const hn::ScalableTag<float> d;
    const hn::Rebind<hwy::float16_t, decltype(d)> narrow;
    const auto lanes = static_cast<int64_t>(hn::Lanes(d));
    for (; i + lanes <= n; i += lanes) {
      const auto* address = reinterpret_cast<const hwy::float16_t*>(source + i);
      hn::StoreU(hn::PromoteTo(d, hn::LoadU(narrow, address)), d, target + i);
    }
  }
  if constexpr (kHardwareFloat16 && std::is_same_v<From, float> && std::is_same_v<To, Float16>) {
    const hn::ScalableTag<float> d;
    const hn::Rebind<hwy::float16_t, decltype(d)> narrow;
    const auto lanes = static_cast<int64_t>(hn::Lanes(d));
    for (; i + lanes <= n; i += lanes) {
      auto* address = reinterpret_cast<hwy::float16_t*>(target + i);
      hn::StoreU(hn::DemoteTo(narrow, hn::LoadU(d, source + i)), narrow, address);
    }
  }
  for (; i < n; ++i) target[i] = convert<To>(source[i]);
}

// Rounds registers of type T to what a narrower type holds, in place or out of place.
template <class T, class Narrow, bool kWrap>
void round_loop(void* out, const void* const* in, int64_t n) {
  const T* source = static_cast<const T*>(in[0]);
  T* target = static_cast<T*>(out);
  for (int64_t i = 0; i < n; ++i) {
    if constexpr (kWrap) {
      // NOLINTNEXTLINE(bugprone-signed-char-misuse): an int8 in a wider register is its sign extension
      target[i] = static_cast<T>(static_cast<Narrow>(source[i]));
    } else {
      target[i] = convert<T>(convert<Narrow>(source[i]));
    }
  }
}

// fp16 goes through memory, so that the hardware's instruction is used.
void round_float16(void* out, const void* const* in, int64_t n) {
  constexpr int64_t kChunk = 256;
  alignas(64) Float16 narrow[kChunk];
  for (int64_t i = 0; i < n; i += kChunk) {
    const int64_t count = std::min(kChunk, n - i);
    const void* source = static_cast<const float*>(in[0]) + i;
    convert_loop<float, Float16>(narrow, &source, count);
    const void* middle = narrow;
    convert_loop<Float16, float>(static_cast<float*>(out) + i, &middle, count);
  }
}

template <class Register, class Memory>
void wrap_store_loop(void* out, const void* const* in, int64_t n) {
  const Register* source = static_cast<const Register*>(in[0]);
  Memory* target = static_cast<Memory*>(out);
  for (int64_t i = 0; i < n; ++i) target[i] = static_cast<Memory>(source[i]);
}

// 8-bit floats: registers hold their values, which memory has as codes.
template <DataType kType>
void load_narrow_loop(void* out, const void* const* in, int64_t n) {
  static constexpr std::array<float, 256> kValues = narrow_values(kType);
  const auto* source = static_cast<const uint8_t*>(in[0]);
  auto* target = static_cast<float*>(out);
  for (int64_t i = 0; i < n; ++i) target[i] = kValues[source[i]];
}

template <DataType kType>
void store_narrow_loop(void* out, const void* const* in, int64_t n) {
  const auto* source = static_cast<const float*>(in[0]);
  auto* target = static_cast<uint8_t*>(out);
  for (int64_t i = 0; i < n; ++i) target[i] = encode_narrow(kType, source[i], /*saturate=*/false);
}

template <DataType kType, bool kSaturate>
void round_narrow_loop(void* out, const void* const* in, int64_t n) {
  const auto* source = static_cast<const float*>(in[0]);
  auto* target = static_cast<float*>(out);
  for (int64_t i = 0; i < n; ++i)
    target[i] = decode_narrow(kType, encode_narrow(kType, source[i], kSaturate));
}

struct NarrowLoops {
  Loop load;
  Loop store;
  Loop round;
  Loop saturate;
};

template <DataType kType>
constexpr NarrowLoops kNarrowLoops = {&load_narrow_loop<kType>, &store_narrow_loop<kType>,
                                      &round_narrow_loop<kType, false>, &round_narrow_loop<kType, true>};

const NarrowLoops* narrow_loops(DataType type) {
  switch (type) {
    case DataType::fp8_e4m3fn:
      return &kNarrowLoops<DataType::fp8_e4m3fn>;
    case DataType::fp8_e4m3fnuz:
      return &kNarrowLoops<DataType::fp8_e4m3fnuz>;
    case DataType::fp8_e5m2:
      return &kNarrowLoops<DataType::fp8_e5m2>;
    case DataType::fp8_e5m2fnuz:
      return &kNarrowLoops<DataType::fp8_e5m2fnuz>;
    case DataType::fp8_e8m0:
      return &kNarrowLoops<DataType::fp8_e8m0>;
    default:
      return nullptr;
  }
}

Loop load_loop(DataType type) {
  if (const NarrowLoops* narrow = narrow_loops(type)) return narrow->load;
  switch (type) {
    case DataType::fp32:
      return &convert_loop<float, float>;
    case DataType::fp64:
      return &convert_loop<double, double>;
    case DataType::fp16:
      return &convert_loop<Float16, float>;
    case DataType::bf16:
      return &convert_loop<BFloat16, float>;
    case DataType::int8:
      return &convert_loop<int8_t, int32_t>;
    case DataType::uint8:
      return &convert_loop<uint8_t, int32_t>;
    case DataType::int32:
      return &convert_loop<int32_t, int32_t>;
    case DataType::int64:
      return &convert_loop<int64_t, int64_t>;
    case DataType::boolean:
      return &convert_loop<bool, float>;
    case DataType::int16:
      return &convert_loop<int16_t, int32_t>;
    case DataType::uint16:
      return &convert_loop<uint16_t, int32_t>;
    case DataType::uint32:
      return &convert_loop<uint32_t, int64_t>;
    default:
      return nullptr;
  }
}

Loop store_loop(DataType type) {
  if (const NarrowLoops* narrow = narrow_loops(type)) return narrow->store;
  switch (type) {
    case DataType::fp32:
      return &convert_loop<float, float>;
    case DataType::fp64:
      return &convert_loop<double, double>;
    case DataType::fp16:
      return &convert_loop<float, Float16>;
    case DataType::bf16:
      return &convert_loop<float, BFloat16>;
    case DataType::int8:
      return &wrap_store_loop<int32_t, int8_t>;
    case DataType::uint8:
      return &wrap_store_loop<int32_t, uint8_t>;
    case DataType::int32:
      return &convert_loop<int32_t, int32_t>;
    case DataType::int64:
      return &convert_loop<int64_t, int64_t>;
    case DataType::boolean:
      return &convert_loop<float, bool>;
    case DataType::int16:
      return &wrap_store_loop<int32_t, int16_t>;
    case DataType::uint16:
      return &wrap_store_loop<int32_t, uint16_t>;
    case DataType::uint32:
      return &wrap_store_loop<int64_t, uint32_t>;
    default:
      return nullptr;
  }
}

template <class From>
Loop conversion_from(Lane to) {
  switch (to) {
    case Lane::f32:
      return &convert_loop<From, float>;
    case Lane::f64:
      return &convert_loop<From, double>;
    case Lane::i32:
      return &convert_loop<From, int32_t>;
    case Lane::i64:
      return &convert_loop<From, int64_t>;
  }
  return nullptr;
}

Loop conversion_loop(Lane from, Lane to, bool saturate) {
  if (from == Lane::i64 && to == Lane::i32 && !saturate) return &wrap_store_loop<int64_t, int32_t>;
  switch (from) {
    case Lane::f32:
      return conversion_from<float>(to);
    case Lane::f64:
      return conversion_from<double>(to);
    case Lane::i32:
      return conversion_from<int32_t>(to);
    case Lane::i64:
      return conversion_from<int64_t>(to);
  }
  return nullptr;
}

Loop rounding_loop(DataType type, bool saturate) {
  if (const NarrowLoops* narrow = narrow_loops(type)) return saturate ? narrow->saturate : narrow->round;
  switch (type) {
    case DataType::fp16:
      return &round_float16;
    case DataType::bf16:
      return &round_loop<float, BFloat16, false>;
    case DataType::int8:
      return saturate ? &round_loop<int32_t, int8_t, false> : &round_loop<int32_t, int8_t, true>;
    case DataType::uint8:
      return saturate ? &round_loop<int32_t, uint8_t, false> : &round_loop<int32_t, uint8_t, true>;
    case DataType::int16:
      return saturate ? &round_loop<int32_t, int16_t, false> : &round_loop<int32_t, int16_t, true>;
    case DataType::uint16:
      return saturate ? &round_loop<int32_t, uint16_t, false> : &round_loop<int32_t, uint16_t, true>;
    case DataType::uint32:
      return saturate ? &round_loop<int64_t, uint32_t, false> : &round_loop<int64_t, uint32_t, true>;
    default:
      return nullptr;
  }
}

}  // namespace
}  // namespace HWY_NAMESPACE
}  // namespace tessera::cpu
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace tessera::cpu {

HWY_EXPORT(load_loop);
HWY_EXPORT(store_loop);
HWY_EXPORT(conversion_loop);
HWY_EXPORT(rounding_loop);

Loop find_load(DataType type) {
  return HWY_DYNAMIC_DISPATCH(load_loop)(type);
}
Loop find_store(DataType type) {
  return HWY_DYNAMIC_DISPATCH(store_loop)(type);
}
Loop find_conversion(Lane from, Lane to, bool saturate) {
  return HWY_DYNAMIC_DISPATCH(conversion_loop)(from, to, saturate);
}
Loop find_rounding(DataType type, bool saturate) {
  return HWY_DYNAMIC_DISPATCH(rounding_loop)(type, saturate);
}

Loop find_loop(std::string_view operator_name, Lane lane, unsigned scalars) {
  const bool wide = lane == Lane::f64 || lane == Lane::i64;
  if (lane == Lane::f32 || lane == Lane::f64) return find_float_loop(operator_name, wide, scalars);
  if (operator_name == "select") return find_integer_select_loop(wide, scalars);
  return find_integer_loop(operator_name, wide, scalars);
}

Lane lane_of(DataType type) {
  switch (type) {
    case DataType::fp64:
      return Lane::f64;
    case DataType::int8:
    case DataType::uint8:
    case DataType::int16:
    case DataType::uint16:
    case DataType::int32:
      return Lane::i32;
    case DataType::uint32:
    case DataType::int64:
      return Lane::i64;
    default:
      return Lane::f32;
  }
}

bool has_lane(DataType type) {
  return find_load(type) != nullptr;
}

int64_t lane_bytes(Lane lane) {
  return lane == Lane::f64 || lane == Lane::i64 ? 8 : 4;
}

DataType storage_of(Lane lane) {
  constexpr DataType kTypes[] = {DataType::fp32, DataType::fp64, DataType::int32, DataType::int64};
  return kTypes[static_cast<int>(lane)];
}

}  // namespace tessera::cpu
#endif
