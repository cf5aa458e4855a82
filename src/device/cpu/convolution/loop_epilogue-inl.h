// The limits of a LoopEpilogue on vectors. Included once per instruction set.
#if defined(TESSERA_LOOP_EPILOGUE_INL_H) == defined(HWY_TARGET_TOGGLE)
#ifdef TESSERA_LOOP_EPILOGUE_INL_H
#undef TESSERA_LOOP_EPILOGUE_INL_H
#else
#define TESSERA_LOOP_EPILOGUE_INL_H
#endif

#include <hwy/highway.h>

HWY_BEFORE_NAMESPACE();
namespace tessera::cpu {
namespace HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

// Comparisons, as the least and the greatest of two take either where one is NaN.
template <class V>
HWY_INLINE V within_limits(V value, V low, V high) {
  value = hn::IfThenElse(hn::Lt(value, low), low, value);
  return hn::IfThenElse(hn::Gt(value, high), high, value);
}

}  // namespace HWY_NAMESPACE
}  // namespace tessera::cpu
HWY_AFTER_NAMESPACE();

#endif
