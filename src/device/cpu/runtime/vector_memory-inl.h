// Vectors of floats from and to memory of fp32, bf16 or fp16. Included once per instruction set.
#if defined(TESSERA_VECTOR_MEMORY_INL_H) == defined(HWY_TARGET_TOGGLE)
#ifdef TESSERA_VECTOR_MEMORY_INL_H
#undef TESSERA_VECTOR_MEMORY_INL_H
#else
#define TESSERA_VECTOR_MEMORY_INL_H
#endif

#include <hwy/highway.h>

#include "tessera/base/data_type.h"
#include "tessera/base/error.h"
#include "tessera/base/half.h"

HWY_BEFORE_NAMESPACE();
namespace tessera::cpu {
namespace HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

template <class D>
HWY_INLINE hn::Vec<D> load_floats(D d, const float* memory) {
  return hn::LoadU(d, memory);
}

template <class D>
HWY_INLINE hn::Vec<D> load_floats(D d, const BFloat16* memory) {
  const hn::Rebind<uint16_t, D> narrow;
  const hn::Rebind<uint32_t, D> wide;
  const auto bits = hn::LoadU(narrow, reinterpret_cast<const uint16_t*>(memory));
  return hn::BitCast(d, hn::ShiftLeft<16>(hn::PromoteTo(wide, bits)));
}

template <class D>
HWY_INLINE hn::Vec<D> load_floats(D d, const Float16* memory) {
  HWY_ALIGN float lanes[hn::MaxLanes(d)];
  for (size_t i = 0; i < hn::Lanes(d); ++i) lanes[i] = static_cast<float>(memory[i]);
  return hn::Load(d, lanes);
}

template <bool kStream = false, class D>
HWY_INLINE void store_floats(hn::Vec<D> value, D d, float* memory) {
  if constexpr (kStream) {
    hn::Stream(value, d, memory);  // past the caches; aligned
  } else {
    hn::StoreU(value, d, memory);
  }
}

// Rounds to nearest even and keeps NaN, as BFloat16 does.
template <bool kStream = false, class D>
HWY_INLINE void store_floats(hn::Vec<D> value, D d, BFloat16* memory) {
  const hn::Rebind<uint16_t, D> narrow;
  const hn::Rebind<uint32_t, D> wide;
  const auto bits = hn::BitCast(wide, value);
  const auto high = hn::ShiftRight<16>(bits);
  const auto rounded =
      hn::ShiftRight<16>(hn::Add(bits, hn::Add(hn::And(high, hn::Set(wide, 1)), hn::Set(wide, 0x7fff))));
  const auto quiet = hn::Or(high, hn::Set(wide, 0x40));
  const auto chosen = hn::IfThenElse(hn::RebindMask(wide, hn::IsNaN(value)), quiet, rounded);
  hn::StoreU(hn::TruncateTo(narrow, chosen), narrow, reinterpret_cast<uint16_t*>(memory));
}

template <bool kStream = false, class D>
HWY_INLINE void store_floats(hn::Vec<D> value, D d, Float16* memory) {
  HWY_ALIGN float lanes[hn::MaxLanes(d)];
  hn::Store(value, d, lanes);
  for (size_t i = 0; i < hn::Lanes(d); ++i) memory[i] = Float16(lanes[i]);
}

// Calls function<T>() with the type of the elements in memory.
template <class Function>
HWY_INLINE void with_element_type(DataType type, Function&& function) {
  switch (type) {
    case DataType::fp32:
      return function.template operator()<float>();
    case DataType::bf16:
      return function.template operator()<BFloat16>();
    case DataType::fp16:
      return function.template operator()<Float16>();
    default:
      fail(ErrorCode::internal, "no vector loop for {}", to_string(type));
  }
}

// Calls function(d, c) for c from 0 to count in steps of the vector, then one by one; d is the tag for
// either.
template <class Function>
HWY_INLINE void for_each_vector(int64_t count, Function&& function) {
  const hn::ScalableTag<float> d;
  const hn::CappedTag<float, 1> one;
  const auto lanes = static_cast<int64_t>(hn::Lanes(d));
  int64_t c = 0;
  for (; c + lanes <= count; c += lanes) function(d, c);
  for (; c < count; ++c) function(one, c);
}

}  // namespace HWY_NAMESPACE
}  // namespace tessera::cpu
HWY_AFTER_NAMESPACE();

#endif
