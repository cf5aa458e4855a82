#include "device/cpu/cluster/cluster_reduce.h"

#include "device/cpu/runtime/highway_targets.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "device/cpu/cluster/cluster_reduce.cpp"
#include <algorithm>
#include <cmath>
#include <limits>
#include <type_traits>

#include <hwy/foreach_target.h>
#include <hwy/highway.h>

HWY_BEFORE_NAMESPACE();
namespace tessera::cpu {
namespace HWY_NAMESPACE {
namespace {

namespace hn = hwy::HWY_NAMESPACE;

struct Sum {
  template <class T>
  static T start() {
    return 0;
  }
  template <class T>
  static HWY_INLINE T apply(T a, T b) {
    return a + b;
  }
  template <class V>
  static HWY_INLINE V vector(V a, V b) {
    return hn::Add(a, b);
  }
};
struct Product {
  template <class T>
  static T start() {
    return 1;
  }
  template <class T>
  static HWY_INLINE T apply(T a, T b) {
    return a * b;
  }
  template <class V>
  static HWY_INLINE V vector(V a, V b) {
    return hn::Mul(a, b);
  }
};
// NaN wins, as in the operators' definitions.
struct Maximum {
  template <class T>
  static T start() {
    return std::is_integral_v<T> ? std::numeric_limits<T>::lowest() : -std::numeric_limits<T>::infinity();
  }
  template <class T>
  static HWY_INLINE T apply(T a, T b) {
    return a != a || a > b ? a : b;
  }
  template <class V>
  static HWY_INLINE V vector(V a, V b) {
    return hn::IfThenElse(hn::Or(hn::IsNaN(a), hn::Gt(a, b)), a, b);
  }
};
struct Minimum {
  template <class T>
  static T start() {
    return std::is_integral_v<T> ? std::numeric_limits<T>::max() : std::numeric_limits<T>::infinity();
  }
  template <class T>
  static HWY_INLINE T apply(T a, T b) {
    return a != a || a < b ? a : b;
  }
  template <class V>
  static HWY_INLINE V vector(V a, V b) {
    return hn::IfThenElse(hn::Or(hn::IsNaN(a), hn::Lt(a, b)), a, b);
  }
};

template <class T>
using Accumulator = std::conditional_t<std::is_integral_v<T>, int64_t, double>;

// Integer sums wrap; unsigned arithmetic makes that defined.
template <class Op>
HWY_INLINE int64_t take(int64_t a, int64_t b) {
  if constexpr (std::is_same_v<Op, Sum> || std::is_same_v<Op, Product>) {
    return static_cast<int64_t>(Op::apply(static_cast<uint64_t>(a), static_cast<uint64_t>(b)));
  } else {
    return Op::apply(a, b);
  }
}
template <class Op>
HWY_INLINE double take(double a, double b) {
  return Op::apply(a, b);
}

// Of each partial sum in fp32, at most this many elements per lane enter before it goes into a double.
constexpr int64_t kRun = 32;

template <class Op, class T>
void reduce_row(const void* tile, int64_t n, void* accumulators) {
  const T* x = static_cast<const T*>(tile);
  auto result = *static_cast<Accumulator<T>*>(accumulators);
  int64_t i = 0;
  if constexpr (std::is_floating_point_v<T>) {
    const hn::ScalableTag<T> d;
    const auto lanes = static_cast<int64_t>(hn::Lanes(d));
    while (i + 4 * lanes <= n) {
      // Four independent chains hide the latency of the addition.
      auto a = hn::LoadU(d, x + i);
      auto b = hn::LoadU(d, x + i + lanes);
      auto c = hn::LoadU(d, x + i + 2 * lanes);
      auto e = hn::LoadU(d, x + i + 3 * lanes);
      i += 4 * lanes;
      for (int64_t k = 1; k < kRun && i + 4 * lanes <= n; ++k, i += 4 * lanes) {
        a = Op::vector(a, hn::LoadU(d, x + i));
        b = Op::vector(b, hn::LoadU(d, x + i + lanes));
        c = Op::vector(c, hn::LoadU(d, x + i + 2 * lanes));
        e = Op::vector(e, hn::LoadU(d, x + i + 3 * lanes));
      }
      HWY_ALIGN T sums[hn::MaxLanes(d)];
      hn::Store(Op::vector(Op::vector(a, b), Op::vector(c, e)), d, sums);
      for (int64_t k = 0; k < lanes; ++k) result = take<Op>(result, static_cast<double>(sums[k]));
    }
  }
  for (; i < n; ++i) result = take<Op>(result, static_cast<Accumulator<T>>(x[i]));
  *static_cast<Accumulator<T>*>(accumulators) = result;
}

template <class Op, class D>
HWY_INLINE void add_lanes(D d, hn::Vec<D> sums, double* accumulators) {
#if HWY_TARGET == HWY_SCALAR
  *accumulators = take<Op>(*accumulators, static_cast<double>(hn::GetLane(sums)));
#else
  if constexpr (sizeof(hn::TFromD<D>) == 8) {
    hn::StoreU(Op::vector(hn::LoadU(d, accumulators), sums), d, accumulators);
  } else {
    const hn::ScalableTag<double> wide;
    const hn::Half<D> half;
    const auto step = hn::Lanes(wide);
    const auto low = hn::PromoteTo(wide, hn::LowerHalf(half, sums));
    const auto high = hn::PromoteTo(wide, hn::UpperHalf(half, sums));
    hn::StoreU(Op::vector(hn::LoadU(wide, accumulators), low), wide, accumulators);
    hn::StoreU(Op::vector(hn::LoadU(wide, accumulators + step), high), wide, accumulators + step);
  }
#endif
}

// kVectors neighboring vectors of each row.
template <class Op, int kVectors, class D>
HWY_INLINE void add_columns(D d, const hn::TFromD<D>* x, int64_t rows, int64_t stride, double* sums) {
  const auto lanes = static_cast<int64_t>(hn::Lanes(d));
  hn::Vec<D> part[kVectors];
  for (int v = 0; v < kVectors; ++v) part[v] = hn::LoadU(d, x + v * lanes);
  for (int64_t r = 1; r < rows; ++r) {
    for (int v = 0; v < kVectors; ++v)
      part[v] = Op::vector(part[v], hn::LoadU(d, x + r * stride + v * lanes));
  }
  for (int v = 0; v < kVectors; ++v) add_lanes<Op>(d, part[v], sums + v * lanes);
}

template <class Op, class T>
void reduce_columns(const void* tile, int64_t rows, int64_t columns, void* accumulators) {
  auto* sums = static_cast<Accumulator<T>*>(accumulators);
  for (int64_t start = 0; start < rows; start += kRun) {
    const T* x = static_cast<const T*>(tile) + start * columns;
    const int64_t count = std::min(kRun, rows - start);
    int64_t j = 0;
    if constexpr (std::is_floating_point_v<T>) {
      const hn::ScalableTag<T> d;
      const auto lanes = static_cast<int64_t>(hn::Lanes(d));
      // Several vectors of a row at once, so that whole cache lines are read one after the other.
      for (; j + 8 * lanes <= columns; j += 8 * lanes) add_columns<Op, 8>(d, x + j, count, columns, sums + j);
      for (; j + 4 * lanes <= columns; j += 4 * lanes) add_columns<Op, 4>(d, x + j, count, columns, sums + j);
      for (; j + lanes <= columns; j += lanes) add_columns<Op, 1>(d, x + j, count, columns, sums + j);
    }
    for (int64_t r = 0; r < count; ++r) {
      for (int64_t k = j; k < columns; ++k) {
        sums[k] = take<Op>(sums[k], static_cast<Accumulator<T>>(x[r * columns + k]));
      }
    }
  }
}

template <class Op, class T>
void combine(void* a, const void* b, int64_t n) {
  auto* target = static_cast<Accumulator<T>*>(a);
  const auto* source = static_cast<const Accumulator<T>*>(b);
  for (int64_t i = 0; i < n; ++i) target[i] = take<Op>(target[i], source[i]);
}

template <class Op, class T>
void clear(void* accumulators, int64_t n) {
  std::fill_n(static_cast<Accumulator<T>*>(accumulators), n, Op::template start<Accumulator<T>>());
}

template <class Op, class T>
constexpr ReductionLoops loops() {
  return {&reduce_row<Op, T>, &reduce_columns<Op, T>, &combine<Op, T>, &clear<Op, T>, nullptr};
}

template <class T>
ReductionLoops loops_of(ReductionKind kind) {
  switch (kind) {
    case ReductionKind::sum:
    case ReductionKind::mean:
      return loops<Sum, T>();
    case ReductionKind::maximum:
      return loops<Maximum, T>();
    case ReductionKind::minimum:
      return loops<Minimum, T>();
    case ReductionKind::product:
      return loops<Product, T>();
    case ReductionKind::none:
      break;
  }
  return {};
}

ReductionLoops reduction_loops(ReductionKind kind, Lane lane) {
  switch (lane) {
    case Lane::f32:
      return loops_of<float>(kind);
    case Lane::f64:
      return loops_of<double>(kind);
    case Lane::i32:
      return loops_of<int32_t>(kind);
    case Lane::i64:
      return loops_of<int64_t>(kind);
  }
  return {};
}

}  // namespace
}  // namespace HWY_NAMESPACE
}  // namespace tessera::cpu
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace tessera::cpu {
namespace {

template <class T, bool kMean>
void finish(const void* accumulators, int64_t n, int64_t count, void* out) {
  T* target = static_cast<T*>(out);
  for (int64_t i = 0; i < n; ++i) {
    if constexpr (std::is_integral_v<T>) {
      int64_t value = static_cast<const int64_t*>(accumulators)[i];
      if (kMean) value = count == 0 ? 0 : value / count;
      value = std::max(value, static_cast<int64_t>(std::numeric_limits<T>::min()));
      target[i] = static_cast<T>(std::min(value, static_cast<int64_t>(std::numeric_limits<T>::max())));
    } else {
      double value = static_cast<const double*>(accumulators)[i];
      if (kMean) value /= static_cast<double>(count);
      if constexpr (std::is_same_v<T, double>) {
        target[i] = value;
      } else {
        target[i] = static_cast<T>(static_cast<float>(value));
      }
    }
  }
}

}  // namespace

HWY_EXPORT(reduction_loops);

ReductionLoops find_reduction(ReductionKind kind, DataType type) {
  ReductionLoops loops = HWY_DYNAMIC_DISPATCH(reduction_loops)(kind, lane_of(type));
  dispatch(type, [&]<typename T>() {
    if constexpr (!std::is_same_v<T, bool>) {
      loops.finish = kind == ReductionKind::mean ? &finish<T, true> : &finish<T, false>;
    }
  });
  return loops;
}

}  // namespace tessera::cpu
#endif
