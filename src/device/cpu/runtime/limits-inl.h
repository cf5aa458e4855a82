// Vectors kept within limits. Included once per instruction set.
#if defined(TESSERA_LIMITS_INL_H) == defined(HWY_TARGET_TOGGLE)
#ifdef TESSERA_LIMITS_INL_H
#undef TESSERA_LIMITS_INL_H
#else
#define TESSERA_LIMITS_INL_H
#endif

#include <hwy/highway.h>

HWY_BEFORE_NAMESPACE();
namespace tessera::cpu {
namespace HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

// NaN stays NaN: where one of two is NaN, x86 takes the second for the least and the greatest of them. Others
// may take either.
template <class V>
HWY_INLINE V within_limits(V value, V low, V high) {
#if HWY_ARCH_X86
  return hn::Min(high, hn::Max(low, value));
#else
  value = hn::IfThenElse(hn::Lt(value, low), low, value);
  return hn::IfThenElse(hn::Gt(value, high), high, value);
#endif
}

}  // namespace HWY_NAMESPACE
}  // namespace tessera::cpu
HWY_AFTER_NAMESPACE();

#endif
