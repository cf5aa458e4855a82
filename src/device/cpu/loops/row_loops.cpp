#include "device/cpu/loops/row_loops.h"

#include "device/cpu/runtime/highway_targets.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "device/cpu/loops/row_loops.cpp"
#include <algorithm>
#include <cmath>

#include <hwy/foreach_target.h>
#include <hwy/highway.h>

#include "device/cpu/cluster/cluster_math-inl.h"

HWY_BEFORE_NAMESPACE();
namespace tessera::cpu {
namespace HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;
namespace {

// Vectors that enter a partial sum before it goes into a double.
constexpr int64_t kRun = 32;

template <class T>
T maximum(const T* x, int64_t n) {
  const hn::ScalableTag<T> d;
  const auto lanes = static_cast<int64_t>(hn::Lanes(d));
  T best = x[0];
  int64_t i = 0;
  if (n >= lanes) {
    auto largest = hn::LoadU(d, x);
    for (i = lanes; i + lanes <= n; i += lanes) largest = maximum_or_nan(largest, hn::LoadU(d, x + i));
    HWY_ALIGN T values[hn::MaxLanes(d)];
    hn::Store(largest, d, values);
    for (int64_t k = 0; k < lanes; ++k) best = best != best || best > values[k] ? best : values[k];
  }
  for (; i < n; ++i) best = best != best || best > x[i] ? best : x[i];
  return best;
}

template <class D>
HWY_INLINE double sum_in_double(D d, hn::Vec<D> v) {
  using T = hn::TFromD<D>;
  HWY_ALIGN T lanes[hn::MaxLanes(d)];
  hn::Store(v, d, lanes);
  double sum = 0;
  for (size_t k = 0; k < hn::Lanes(d); ++k) sum += static_cast<double>(lanes[k]);
  return sum;
}

template <class T, bool kStore>
double exponentials_of(const T* x, T shift, T* out, int64_t n) {
  const hn::ScalableTag<T> d;
  const auto lanes = static_cast<int64_t>(hn::Lanes(d));
  const auto by = hn::Set(d, shift);
  double result = 0;
  int64_t i = 0;
  while (i + lanes <= n) {
    auto part = hn::Zero(d);
    for (int64_t k = 0; k < kRun && i + lanes <= n; ++k, i += lanes) {
      // The shift is the largest element, so nothing overflows; a NaN or an infinity among the elements turns
      // every term into 0, and the division by their sum into NaN, as it should be.
      const auto term = hn::Exp(d, hn::Sub(hn::LoadU(d, x + i), by));
      if (kStore) hn::StoreU(term, d, out + i);
      part = hn::Add(part, term);
    }
    result += sum_in_double(d, part);
  }
  for (; i < n; ++i) {
    const T term = std::exp(x[i] - shift);
    if (kStore) out[i] = term;
    result += static_cast<double>(term);
  }
  return result;
}

template <class T>
double exponentials(const T* x, T shift, T* out, int64_t n) {
  return out == nullptr ? exponentials_of<T, false>(x, shift, out, n)
                        : exponentials_of<T, true>(x, shift, out, n);
}

template <class T>
void affine(const T* x, T factor, T offset, T* out, int64_t n) {
  const hn::ScalableTag<T> d;
  const auto lanes = static_cast<int64_t>(hn::Lanes(d));
  const auto times = hn::Set(d, factor);
  const auto plus = hn::Set(d, offset);
  int64_t i = 0;
  for (; i + lanes <= n; i += lanes) hn::StoreU(hn::MulAdd(hn::LoadU(d, x + i), times, plus), d, out + i);
  for (; i < n; ++i) out[i] = x[i] * factor + offset;
}

template <class T>
void subtract(const T* x, T first, T second, T* out, int64_t n) {
  const hn::ScalableTag<T> d;
  const auto lanes = static_cast<int64_t>(hn::Lanes(d));
  const auto a = hn::Set(d, first);
  const auto b = hn::Set(d, second);
  int64_t i = 0;
  for (; i + lanes <= n; i += lanes) hn::StoreU(hn::Sub(hn::Sub(hn::LoadU(d, x + i), a), b), d, out + i);
  for (; i < n; ++i) out[i] = (x[i] - first) - second;
}

template <class T>
void rotate(const T* first, const T* second, const T* cosines, const T* sines, T* first_out, T* second_out,
            int64_t n) {
  const auto rotate_at = [&](auto d, int64_t i) {
    const auto a = hn::LoadU(d, first + i);
    const auto b = hn::LoadU(d, second + i);
    const auto cosine = hn::LoadU(d, cosines + i);
    const auto sine = hn::LoadU(d, sines + i);
    hn::StoreU(hn::MulSub(a, cosine, hn::Mul(b, sine)), d, first_out + i);
    hn::StoreU(hn::MulAdd(b, cosine, hn::Mul(a, sine)), d, second_out + i);
  };
  const hn::ScalableTag<T> d;
  const hn::CappedTag<T, 1> one;
  const auto lanes = static_cast<int64_t>(hn::Lanes(d));
  int64_t i = 0;
  for (; i + lanes <= n; i += lanes) rotate_at(d, i);
  for (; i < n; ++i) rotate_at(one, i);
}

template <class T>
constexpr RowLoops<T> kLoops = {&maximum<T>, &exponentials<T>, &affine<T>, &subtract<T>, &rotate<T>};

const RowLoops<float>* float_loops() {
  return &kLoops<float>;
}
const RowLoops<double>* double_loops() {
  return &kLoops<double>;
}

}  // namespace
}  // namespace HWY_NAMESPACE
}  // namespace tessera::cpu
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace tessera::cpu {

HWY_EXPORT(float_loops);
HWY_EXPORT(double_loops);

const RowLoops<float>& row_loops(float) {
  return *HWY_DYNAMIC_DISPATCH(float_loops)();
}
const RowLoops<double>& row_loops(double) {
  return *HWY_DYNAMIC_DISPATCH(double_loops)();
}

}  // namespace tessera::cpu
#endif
