// The floating-point loops, and the tables of primitives: one line per operator.
#include "device/cpu/runtime/highway_targets.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "device/cpu/cluster/cluster_loops_float.cpp"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

#include "device/cpu/cluster/cluster_loop_tables.h"
#include "device/cpu/cluster/cluster_math-inl.h"

// X(operator, expression of the vector `a`, of type V under the tag `d` with elements T)
#ifndef TESSERA_UNARY_PRIMITIVES
#define TESSERA_UNARY_PRIMITIVES(X)                \
  X(copy, a)                                       \
  X(negate, hn::Neg(a))                            \
  X(absolute, hn::Abs(a))                          \
  X(sign, sign_or_nan(d, a))                       \
  X(exp, exp_anywhere(d, a))                       \
  X(log, log_anywhere(d, a))                       \
  X(sqrt, hn::Sqrt(a))                             \
  X(rsqrt, hn::Div(hn::Set(d, T(1)), hn::Sqrt(a))) \
  X(reciprocal, hn::Div(hn::Set(d, T(1)), a))      \
  X(square, hn::Mul(a, a))                         \
  X(erf, erf_anywhere(d, a))                       \
  X(sigmoid, sigmoid(d, a))                        \
  X(tanh, tanh_anywhere(d, a))                     \
  X(sin, sin_anywhere(d, a))                       \
  X(cos, cos_anywhere(d, a))                       \
  X(floor, hn::Floor(a))                           \
  X(ceil, hn::Ceil(a))                             \
  X(round, hn::Round(a))                           \
  X(relu, hn::IfThenElse(hn::Lt(a, hn::Zero(d)), hn::Zero(d), a))

// X(operator, expression of `a` and `b`)
#define TESSERA_BINARY_PRIMITIVES(X) \
  X(add, hn::Add(a, b))              \
  X(subtract, hn::Sub(a, b))         \
  X(multiply, hn::Mul(a, b))         \
  X(divide, hn::Div(a, b))           \
  X(maximum, maximum_or_nan(a, b))   \
  X(minimum, minimum_or_nan(a, b))   \
  X(power, power_per_lane(d, a, b))

// X(operator, mask of `a`); the result is 0 or 1 in f32
#define TESSERA_UNARY_TESTS(X)           \
  X(is_finite, hn::IsFinite(a))          \
  X(logical_not, hn::Eq(a, hn::Zero(d))) \
  X(is_nonzero, differs(a, hn::Zero(d)))

// X(operator, mask of `a` and `b`)
#define TESSERA_BINARY_TESTS(X)                                             \
  X(equal, hn::Eq(a, b))                                                    \
  X(not_equal, differs(a, b))                                               \
  X(less, hn::Lt(a, b))                                                     \
  X(less_equal, hn::Le(a, b))                                               \
  X(greater, hn::Gt(a, b))                                                  \
  X(greater_equal, hn::Ge(a, b))                                            \
  X(logical_and, hn::And(differs(a, hn::Zero(d)), differs(b, hn::Zero(d)))) \
  X(logical_or, hn::Or(differs(a, hn::Zero(d)), differs(b, hn::Zero(d))))
#endif

HWY_BEFORE_NAMESPACE();
namespace tessera::cpu {
namespace HWY_NAMESPACE {
namespace {  // the structures of one name differ from file to file

namespace hn = hwy::HWY_NAMESPACE;

#define TESSERA_DEFINE_UNARY(NAME, EXPRESSION)                        \
  struct Op_##NAME {                                                  \
    template <class D, class V = hn::Vec<D>, class T = hn::TFromD<D>> \
    HWY_INLINE auto operator()(D d, V a) const {                      \
      (void)d;                                                        \
      return EXPRESSION;                                              \
    }                                                                 \
  };
#define TESSERA_DEFINE_BINARY(NAME, EXPRESSION)                       \
  struct Op_##NAME {                                                  \
    template <class D, class V = hn::Vec<D>, class T = hn::TFromD<D>> \
    HWY_INLINE auto operator()(D d, V a, V b) const {                 \
      (void)d;                                                        \
      return EXPRESSION;                                              \
    }                                                                 \
  };
TESSERA_UNARY_PRIMITIVES(TESSERA_DEFINE_UNARY)
TESSERA_UNARY_TESTS(TESSERA_DEFINE_UNARY)
TESSERA_BINARY_PRIMITIVES(TESSERA_DEFINE_BINARY)
TESSERA_BINARY_TESTS(TESSERA_DEFINE_BINARY)

template <class T>
using Tag = hn::ScalableTag<T>;

// One operand: a scalar is splat once, anything else is read as the loop goes.
template <class T, bool kScalar>
class Operand {
 public:
  HWY_INLINE explicit Operand(const void* memory) : memory_(static_cast<const T*>(memory)) {}
  HWY_INLINE hn::Vec<Tag<T>> vector(int64_t i) const {
    const Tag<T> d;
    if constexpr (kScalar) {
      return hn::Set(d, *memory_);
    } else {
      return hn::LoadU(d, memory_ + i);
    }
  }
  // The first `count` lanes from element i on, the others copies of the first.
  HWY_INLINE hn::Vec<Tag<T>> part(int64_t i, int64_t count) const {
    const Tag<T> d;
    if constexpr (kScalar) {
      return hn::Set(d, *memory_);
    } else {
      HWY_ALIGN T lanes[hn::MaxLanes(d)];
      for (size_t k = 0; k < hn::Lanes(d); ++k) {
        lanes[k] = memory_[i + (static_cast<int64_t>(k) < count ? static_cast<int64_t>(k) : 0)];
      }
      return hn::Load(d, lanes);
    }
  }

 private:
  const T* memory_;
};

template <class V, class D>
HWY_INLINE void store_part(V v, D d, hn::TFromD<D>* out, int64_t count) {
  HWY_ALIGN hn::TFromD<D> lanes[hn::MaxLanes(d)];
  hn::Store(v, d, lanes);
  for (int64_t k = 0; k < count; ++k) out[k] = lanes[k];
}

// Values: out has the operands' type.
template <class Op, class T, bool kScalarA>
void unary_loop(void* out, const void* const* in, int64_t n) {
  const Tag<T> d;
  const auto lanes = static_cast<int64_t>(hn::Lanes(d));
  const Operand<T, kScalarA> a(in[0]);
  T* target = static_cast<T*>(out);
  int64_t i = 0;
  for (; i + lanes <= n; i += lanes) hn::StoreU(Op()(d, a.vector(i)), d, target + i);
  if (i < n) store_part(Op()(d, a.part(i, n - i)), d, target + i, n - i);
}

template <class Op, class T, bool kScalarA, bool kScalarB>
void binary_loop(void* out, const void* const* in, int64_t n) {
  const Tag<T> d;
  const auto lanes = static_cast<int64_t>(hn::Lanes(d));
  const Operand<T, kScalarA> a(in[0]);
  const Operand<T, kScalarB> b(in[1]);
  T* target = static_cast<T*>(out);
  int64_t i = 0;
  for (; i + lanes <= n; i += lanes) hn::StoreU(Op()(d, a.vector(i), b.vector(i)), d, target + i);
  if (i < n) store_part(Op()(d, a.part(i, n - i), b.part(i, n - i)), d, target + i, n - i);
}

// Tests: out is f32, 0 or 1.
template <class D, class M>
HWY_INLINE auto zero_or_one(D d, M mask) {
  const auto value = hn::IfThenElseZero(mask, hn::Set(d, hn::TFromD<D>(1)));
  if constexpr (sizeof(hn::TFromD<D>) == 4) {
    return value;
  } else {
    return hn::DemoteTo(hn::Rebind<float, D>(), value);
  }
}

template <class Op, class T, bool kScalarA>
void unary_test_loop(void* out, const void* const* in, int64_t n) {
  const Tag<T> d;
  const hn::Rebind<float, Tag<T>> df;
  const auto lanes = static_cast<int64_t>(hn::Lanes(d));
  const Operand<T, kScalarA> a(in[0]);
  float* target = static_cast<float*>(out);
  int64_t i = 0;
  for (; i + lanes <= n; i += lanes) hn::StoreU(zero_or_one(d, Op()(d, a.vector(i))), df, target + i);
  if (i < n) store_part(zero_or_one(d, Op()(d, a.part(i, n - i))), df, target + i, n - i);
}

template <class Op, class T, bool kScalarA, bool kScalarB>
void binary_test_loop(void* out, const void* const* in, int64_t n) {
  const Tag<T> d;
  const hn::Rebind<float, Tag<T>> df;
  const auto lanes = static_cast<int64_t>(hn::Lanes(d));
  const Operand<T, kScalarA> a(in[0]);
  const Operand<T, kScalarB> b(in[1]);
  float* target = static_cast<float*>(out);
  int64_t i = 0;
  for (; i + lanes <= n; i += lanes) {
    hn::StoreU(zero_or_one(d, Op()(d, a.vector(i), b.vector(i))), df, target + i);
  }
  if (i < n) {
    store_part(zero_or_one(d, Op()(d, a.part(i, n - i), b.part(i, n - i))), df, target + i, n - i);
  }
}

// in[0]: the condition in f32, in[1] and in[2]: the values.
template <class T, bool kScalarC, bool kScalarA, bool kScalarB>
void select_loop(void* out, const void* const* in, int64_t n) {
  const float* condition = static_cast<const float*>(in[0]);
  const T* a = static_cast<const T*>(in[1]);
  const T* b = static_cast<const T*>(in[2]);
  T* target = static_cast<T*>(out);
  int64_t i = 0;
  if constexpr (std::is_same_v<T, float>) {
    const Tag<float> d;
    const auto lanes = static_cast<int64_t>(hn::Lanes(d));
    const Operand<float, kScalarC> c(in[0]);
    const Operand<float, kScalarA> x(in[1]);
    const Operand<float, kScalarB> y(in[2]);
    for (; i + lanes <= n; i += lanes) {
      const auto chosen = hn::IfThenElse(differs(c.vector(i), hn::Zero(d)), x.vector(i), y.vector(i));
      hn::StoreU(chosen, d, target + i);
    }
  }
  for (; i < n; ++i) {
    target[i] = condition[kScalarC ? 0 : i] != 0 ? a[kScalarA ? 0 : i] : b[kScalarB ? 0 : i];
  }
}

template <class Op, class T>
constexpr PrimitiveLoops unary_loops() {
  return {&unary_loop<Op, T, false>, &unary_loop<Op, T, true>};
}
template <class Op, class T>
constexpr PrimitiveLoops unary_test_loops() {
  return {&unary_test_loop<Op, T, false>, &unary_test_loop<Op, T, true>};
}
template <class Op, class T>
constexpr PrimitiveLoops binary_loops() {
  return {&binary_loop<Op, T, false, false>, &binary_loop<Op, T, true, false>,
          &binary_loop<Op, T, false, true>};
}
template <class Op, class T>
constexpr PrimitiveLoops binary_test_loops() {
  return {&binary_test_loop<Op, T, false, false>, &binary_test_loop<Op, T, true, false>,
          &binary_test_loop<Op, T, false, true>};
}

template <class T>
constexpr PrimitiveLoops select_loops() {
  return {&select_loop<T, false, false, false>, &select_loop<T, true, false, false>,
          &select_loop<T, false, true, false>,  &select_loop<T, true, true, false>,
          &select_loop<T, false, false, true>,  &select_loop<T, true, false, true>,
          &select_loop<T, false, true, true>};
}

struct Row {
  std::string_view name;
  PrimitiveLoops f32;
  PrimitiveLoops f64;
};

#define TESSERA_UNARY_ROW(NAME, EXPRESSION) \
  {#NAME, unary_loops<Op_##NAME, float>(), unary_loops<Op_##NAME, double>()},
#define TESSERA_UNARY_TEST_ROW(NAME, EXPRESSION) \
  {#NAME, unary_test_loops<Op_##NAME, float>(), unary_test_loops<Op_##NAME, double>()},
#define TESSERA_BINARY_ROW(NAME, EXPRESSION) \
  {#NAME, binary_loops<Op_##NAME, float>(), binary_loops<Op_##NAME, double>()},
#define TESSERA_BINARY_TEST_ROW(NAME, EXPRESSION) \
  {#NAME, binary_test_loops<Op_##NAME, float>(), binary_test_loops<Op_##NAME, double>()},

constexpr Row kRows[] = {
    TESSERA_UNARY_PRIMITIVES(TESSERA_UNARY_ROW)    //
    TESSERA_UNARY_TESTS(TESSERA_UNARY_TEST_ROW)    //
    TESSERA_BINARY_PRIMITIVES(TESSERA_BINARY_ROW)  //
    TESSERA_BINARY_TESTS(TESSERA_BINARY_TEST_ROW)  //
    {"select", select_loops<float>(), select_loops<double>()},
};

const PrimitiveLoops* find_float(std::string_view name, bool wide) {
  for (const Row& row : kRows) {
    if (row.name == name) return wide ? &row.f64 : &row.f32;
  }
  return nullptr;
}

std::string_view float_name(size_t index) {
  return index < std::size(kRows) ? kRows[index].name : std::string_view();
}

Loop find_integer_select(bool wide, unsigned scalars) {
  static constexpr PrimitiveLoops kNarrow = select_loops<int32_t>();
  static constexpr PrimitiveLoops kWide = select_loops<int64_t>();
  return (wide ? kWide : kNarrow).by_scalars[scalars];
}

}  // namespace
}  // namespace HWY_NAMESPACE
}  // namespace tessera::cpu
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace tessera::cpu {

HWY_EXPORT(find_float);
HWY_EXPORT(float_name);
HWY_EXPORT(find_integer_select);

Loop find_float_loop(std::string_view name, bool wide, unsigned scalars) {
  const PrimitiveLoops* loops = HWY_DYNAMIC_DISPATCH(find_float)(name, wide);
  return loops == nullptr ? nullptr : loops->by_scalars[scalars];
}

Loop find_integer_select_loop(bool wide, unsigned scalars) {
  return HWY_DYNAMIC_DISPATCH(find_integer_select)(wide, scalars);
}

std::vector<std::string> loop_names() {
  std::vector<std::string> names;
  for (size_t i = 0; !HWY_DYNAMIC_DISPATCH(float_name)(i).empty(); ++i) {
    names.emplace_back(HWY_DYNAMIC_DISPATCH(float_name)(i));
  }
  std::sort(names.begin(), names.end());
  return names;
}

}  // namespace tessera::cpu
#endif
