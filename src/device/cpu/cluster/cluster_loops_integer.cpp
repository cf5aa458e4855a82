// The integer loops: plain C++, compiled and vectorized for each instruction set. Arithmetic wraps.
#include "device/cpu/runtime/highway_targets.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "device/cpu/cluster/cluster_loops_integer.cpp"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

#include "device/cpu/cluster/cluster_loop_tables.h"

// X(operator, expression of `a` and `b`, integers of type T; U is the unsigned type)
#ifndef TESSERA_INTEGER_PRIMITIVES
#define TESSERA_INTEGER_PRIMITIVES(X)                                \
  X(add, static_cast<T>(static_cast<U>(a) + static_cast<U>(b)))      \
  X(subtract, static_cast<T>(static_cast<U>(a) - static_cast<U>(b))) \
  X(multiply, static_cast<T>(static_cast<U>(a) * static_cast<U>(b))) \
  X(divide, divide_towards_zero(a, b))                               \
  X(maximum, a > b ? a : b)                                          \
  X(minimum, a < b ? a : b)                                          \
  X(power, integer_power(a, b))                                      \
  X(copy, a)                                                         \
  X(negate, static_cast<T>(U{0} - static_cast<U>(a)))                \
  X(absolute, a < 0 ? static_cast<T>(U{0} - static_cast<U>(a)) : a)  \
  X(sign, static_cast<T>((a > 0) - (a < 0)))                         \
  X(square, static_cast<T>(static_cast<U>(a) * static_cast<U>(a)))   \
  X(relu, a > 0 ? a : T{0})                                          \
  X(floor, a)                                                        \
  X(ceil, a)                                                         \
  X(round, a)

// The result is 0 or 1 in f32.
#define TESSERA_INTEGER_TESTS(X) \
  X(equal, a == b)               \
  X(not_equal, a != b)           \
  X(less, a < b)                 \
  X(less_equal, a <= b)          \
  X(greater, a > b)              \
  X(greater_equal, a >= b)       \
  X(is_nonzero, a != 0)          \
  X(is_finite, true)
#endif

HWY_BEFORE_NAMESPACE();
namespace tessera::cpu {
namespace HWY_NAMESPACE {
namespace {  // the structures of one name differ from file to file

template <class T>
HWY_INLINE T divide_towards_zero(T a, T b) {
  using U = std::make_unsigned_t<T>;
  if (b == 0) return 0;
  return b == -1 ? static_cast<T>(U{0} - static_cast<U>(a)) : static_cast<T>(a / b);
}

template <class T>
HWY_INLINE T integer_power(T base, T exponent) {
  using U = std::make_unsigned_t<T>;
  if (exponent < 0) return base == 1 ? 1 : base == -1 ? (exponent % 2 == 0 ? 1 : -1) : 0;
  U result = 1;
  U factor = static_cast<U>(base);
  for (; exponent > 0; exponent /= 2, factor *= factor) {
    if (exponent % 2 == 1) result *= factor;
  }
  return static_cast<T>(result);
}

#define TESSERA_DEFINE_INTEGER(NAME, EXPRESSION)          \
  struct Op_##NAME {                                      \
    template <class T>                                    \
    HWY_INLINE static T apply(T a, T b) {                 \
      using U [[maybe_unused]] = std::make_unsigned_t<T>; \
      (void)b;                                            \
      return EXPRESSION;                                  \
    }                                                     \
  };
#define TESSERA_DEFINE_INTEGER_TEST(NAME, EXPRESSION) \
  struct Test_##NAME {                                \
    template <class T>                                \
    HWY_INLINE static float apply(T a, T b) {         \
      (void)a, (void)b;                               \
      return (EXPRESSION) ? 1.0f : 0.0f;              \
    }                                                 \
  };
TESSERA_INTEGER_PRIMITIVES(TESSERA_DEFINE_INTEGER)
TESSERA_INTEGER_TESTS(TESSERA_DEFINE_INTEGER_TEST)

// Unary operators leave in[1] unset; they read in[0] twice.
template <class Op, class T, class Out, bool kScalarA, bool kScalarB>
void integer_loop(void* out, const void* const* in, int64_t n) {
  const T* a = static_cast<const T*>(in[0]);
  const T* b = static_cast<const T*>(in[1] == nullptr ? in[0] : in[1]);
  Out* target = static_cast<Out*>(out);
  for (int64_t i = 0; i < n; ++i) target[i] = Op::template apply<T>(a[kScalarA ? 0 : i], b[kScalarB ? 0 : i]);
}

template <class Op, class T, class Out>
constexpr PrimitiveLoops integer_loops() {
  return {&integer_loop<Op, T, Out, false, false>, &integer_loop<Op, T, Out, true, false>,
          &integer_loop<Op, T, Out, false, true>};
}

struct Row {
  std::string_view name;
  PrimitiveLoops narrow;
  PrimitiveLoops wide;
};

#define TESSERA_INTEGER_ROW(NAME, EXPRESSION) \
  {#NAME, integer_loops<Op_##NAME, int32_t, int32_t>(), integer_loops<Op_##NAME, int64_t, int64_t>()},
#define TESSERA_INTEGER_TEST_ROW(NAME, EXPRESSION) \
  {#NAME, integer_loops<Test_##NAME, int32_t, float>(), integer_loops<Test_##NAME, int64_t, float>()},

constexpr Row kRows[] = {
    TESSERA_INTEGER_PRIMITIVES(TESSERA_INTEGER_ROW)  //
    TESSERA_INTEGER_TESTS(TESSERA_INTEGER_TEST_ROW)  //
};

Loop find_integer(std::string_view name, bool wide, unsigned scalars) {
  for (const Row& row : kRows) {
    if (row.name == name) return (wide ? row.wide : row.narrow).by_scalars[scalars];
  }
  return nullptr;
}

}  // namespace
}  // namespace HWY_NAMESPACE
}  // namespace tessera::cpu
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace tessera::cpu {

HWY_EXPORT(find_integer);

Loop find_integer_loop(std::string_view name, bool wide, unsigned scalars) {
  return HWY_DYNAMIC_DISPATCH(find_integer)(name, wide, scalars);
}

}  // namespace tessera::cpu
#endif
