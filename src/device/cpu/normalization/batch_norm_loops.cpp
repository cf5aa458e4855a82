#include "device/cpu/normalization/batch_norm_loops.h"

#include "device/cpu/runtime/highway_targets.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "device/cpu/normalization/batch_norm_loops.cpp"
#include <algorithm>
#include <type_traits>

#include <hwy/foreach_target.h>
#include <hwy/highway.h>

#include "device/cpu/runtime/vector_memory-inl.h"

HWY_BEFORE_NAMESPACE();
namespace tessera::cpu {
namespace HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

// Rows summed in fp32 before the sums go to double; a multiple of kUnrolled.
// Rows read side by side, so that the accumulators in L1 are touched once for all of them.
constexpr int64_t kUnrolled = 4;

// About so many elements are fetched before they are needed. The processor does not see by itself what is
// read next: rows side by side, and some of them from the last to the first.
constexpr int64_t kFetchedAhead = 4096;

// Fetches the rows ahead of those that `at` is in.
struct Ahead {
  int64_t offset;  // in elements, from a row to the one ahead
  template <typename T>
  HWY_INLINE void fetch(const T* at) const {
    __builtin_prefetch(at + offset, /*for writing=*/0, /*locality=*/2);
  }
};

// Runs body(d, c, row, rows, ahead) over the rows: `rows` of them from `row` on, for channels from c on.
// Some rows at a time, from the last to the first when `backwards`: what the producer wrote last is still in
// the cache.
template <class Body, class AfterSome>
HWY_INLINE void for_each_row(const RowRange& range, bool backwards, Body&& body, AfterSome&& after_some) {
  const int64_t rows = range.end - range.begin;
  const int64_t blocks = (rows + kSummedRows - 1) / kSummedRows;
  const int64_t distance =
      std::clamp(kFetchedAhead / range.channels / kUnrolled, int64_t{2}, kSummedRows / 2 / kUnrolled) *
      kUnrolled;
  for (int64_t i = 0; i < blocks; ++i) {
    const int64_t begin = range.begin + (backwards ? blocks - 1 - i : i) * kSummedRows;
    const int64_t end = std::min(begin + kSummedRows, range.end);
    const auto ahead_of = [&](int64_t row) {
      int64_t ahead = row + distance;
      if (backwards && ahead >= end) ahead += begin - kSummedRows - end;
      return Ahead{(std::clamp(ahead, range.begin, std::max(range.end - kUnrolled, range.begin)) - row) *
                   range.channels};
    };
    int64_t row = begin;
    for (; row + kUnrolled <= end; row += kUnrolled) {
      const Ahead ahead = ahead_of(row);
      for_each_vector(range.channels, [&](auto d, int64_t c) { body(d, c, row, kUnrolled, ahead); });
    }
    for (; row < end; ++row) {
      for_each_vector(range.channels, [&](auto d, int64_t c) { body(d, c, row, int64_t{1}, Ahead{0}); });
    }
    after_some();
  }
}

// Adds the sums of some rows to the totals and clears them.
HWY_INLINE void flush(int64_t channels, float* summed, double* sums) {
  for (int64_t i = 0; i < 2 * channels; ++i) {
    sums[i] += static_cast<double>(summed[i]);
    summed[i] = 0;
  }
}

template <class D>
HWY_INLINE void accumulate(D d, float* memory, hn::Vec<D> value) {
  hn::StoreU(hn::Add(hn::LoadU(d, memory), value), d, memory);
}

template <typename T>
void statistics(const StatisticsPass& pass) {
  const int64_t channels = pass.rows.channels;
  const T* x = static_cast<const T*>(pass.x);
  std::fill_n(pass.summed, 2 * channels, 0.0F);
  std::fill_n(pass.sums, 2 * channels, 0.0);
  for_each_row(
      pass.rows, /*backwards=*/true,
      [&](auto d, int64_t c, int64_t row, int64_t rows, Ahead ahead) HWY_ATTR {
        const auto shift = hn::LoadU(d, pass.shift + c);
        const T* at = x + row * channels + c;
        for (int64_t r = 0; r < rows; ++r) ahead.fetch(at + r * channels);
        auto value = hn::Sub(load_floats(d, at), shift);
        auto sum = value;
        auto squares = hn::Mul(value, value);
        for (int64_t r = 1; r < rows; ++r) {
          value = hn::Sub(load_floats(d, at + r * channels), shift);
          sum = hn::Add(sum, value);
          squares = hn::MulAdd(value, value, squares);
        }
        accumulate(d, pass.summed + c, sum);
        accumulate(d, pass.summed + channels + c, squares);
      },
      [&] { flush(channels, pass.summed, pass.sums); });
}

template <class D>
HWY_INLINE hn::Vec<D> apply(D d, const ChannelAffine& affine, int64_t c, hn::Vec<D> x) {
  return hn::MulAdd(hn::Sub(x, hn::LoadU(d, affine.mean + c)), hn::LoadU(d, affine.factor + c),
                    hn::LoadU(d, affine.bias + c));
}

template <typename T, bool kResidual, bool kRelu, bool kStream>
void normalize(const NormalizePass& pass) {
  const int64_t channels = pass.rows.channels;
  const T* x = static_cast<const T*>(pass.x);
  const T* residual = static_cast<const T*>(pass.residual);
  T* y = static_cast<T*>(pass.y);
  for_each_row(
      pass.rows, /*backwards=*/false,
      [&](auto d, int64_t c, int64_t row, int64_t rows, Ahead ahead) HWY_ATTR {
        for (int64_t r = 0; r < rows; ++r) {
          const int64_t at = (row + r) * channels + c;
          ahead.fetch(x + at);
          if constexpr (kResidual) ahead.fetch(residual + at);
          auto value = apply(d, pass.affine, c, load_floats(d, x + at));
          if constexpr (kResidual) value = hn::Add(value, load_floats(d, residual + at));
          if constexpr (kRelu) value = hn::IfThenZeroElse(hn::Lt(value, hn::Zero(d)), value);
          store_floats<kStream>(value, d, y + at);
        }
      },
      [] {});
}

enum class Mask { none, from_result, from_input };

// dz at one place; `x` is the value there.
template <typename T, bool kSum, Mask kMask, class D>
HWY_INLINE hn::Vec<D> masked_gradient(D d, const GradientSource& source, int64_t at, int64_t c, hn::Vec<D> x,
                                      Ahead ahead) {
  ahead.fetch(static_cast<const T*>(source.dy) + at);
  if constexpr (kSum) ahead.fetch(static_cast<const T*>(source.dy2) + at);
  if constexpr (kMask == Mask::from_result) ahead.fetch(static_cast<const T*>(source.y) + at);
  auto dz = load_floats(d, static_cast<const T*>(source.dy) + at);
  if constexpr (kSum) dz = hn::Add(dz, load_floats(d, static_cast<const T*>(source.dy2) + at));
  if constexpr (kMask == Mask::from_result) {
    dz = hn::IfThenElseZero(hn::Gt(load_floats(d, static_cast<const T*>(source.y) + at), hn::Zero(d)), dz);
  }
  if constexpr (kMask == Mask::from_input) {
    dz = hn::IfThenElseZero(hn::Gt(apply(d, source.affine, c, x), hn::Zero(d)), dz);
  }
  return dz;
}

template <typename T, bool kSum, Mask kMask>
void gradient_sums(const GradientSumsPass& pass) {
  const int64_t channels = pass.rows.channels;
  const T* x = static_cast<const T*>(pass.x);
  T* written = static_cast<T*>(pass.dz);
  std::fill_n(pass.summed, 2 * channels, 0.0F);
  std::fill_n(pass.sums, 2 * channels, 0.0);
  for_each_row(
      pass.rows, /*backwards=*/true,
      [&](auto d, int64_t c, int64_t row, int64_t rows, Ahead ahead) HWY_ATTR {
        const auto mean = hn::LoadU(d, pass.mean + c);
        auto sum = hn::Zero(d);
        auto products = hn::Zero(d);
        for (int64_t r = 0; r < rows; ++r) {
          const int64_t at = (row + r) * channels + c;
          ahead.fetch(x + at);
          const auto value = load_floats(d, x + at);
          const auto dz = masked_gradient<T, kSum, kMask>(d, pass.source, at, c, value, ahead);
          sum = hn::Add(sum, dz);
          products = hn::MulAdd(dz, hn::Sub(value, mean), products);
          if (written != nullptr) store_floats(dz, d, written + at);
        }
        accumulate(d, pass.summed + c, sum);
        accumulate(d, pass.summed + channels + c, products);
      },
      [&] { flush(channels, pass.summed, pass.sums); });
}

template <typename T, bool kSum, Mask kMask, bool kStream>
void input_gradient(const InputGradientPass& pass) {
  const int64_t channels = pass.rows.channels;
  const T* x = static_cast<const T*>(pass.x);
  T* dx = static_cast<T*>(pass.dx);
  for_each_row(
      pass.rows, /*backwards=*/false,
      [&](auto d, int64_t c, int64_t row, int64_t rows, Ahead ahead) HWY_ATTR {
        const auto mean = hn::LoadU(d, pass.mean + c);
        const auto by_gradient = hn::LoadU(d, pass.by_gradient + c);
        const auto by_input = hn::LoadU(d, pass.by_input + c);
        const auto constant = hn::LoadU(d, pass.constant + c);
        for (int64_t r = 0; r < rows; ++r) {
          const int64_t at = (row + r) * channels + c;
          ahead.fetch(x + at);
          const auto value = load_floats(d, x + at);
          const auto dz = masked_gradient<T, kSum, kMask>(d, pass.source, at, c, value, ahead);
          const auto result =
              hn::MulAdd(dz, by_gradient, hn::MulAdd(hn::Sub(value, mean), by_input, constant));
          store_floats<kStream>(result, d, dx + at);
        }
      },
      [] {});
}

// Calls function<kSum, kMask>().
template <class Function>
HWY_INLINE void with_source(const GradientSource& source, Function&& function) {
  const auto with_mask = [&]<bool kSum>() {
    if (source.y != nullptr) return function.template operator()<kSum, Mask::from_result>();
    if (source.affine.factor != nullptr) return function.template operator()<kSum, Mask::from_input>();
    return function.template operator()<kSum, Mask::none>();
  };
  return source.dy2 != nullptr ? with_mask.template operator()<true>()
                               : with_mask.template operator()<false>();
}

// Calls function<kStream>(). Only floats are ever stored past the caches (vector_memory-inl.h).
template <typename T, class Function>
HWY_INLINE void with_stream(bool stream, Function&& function) {
  if constexpr (std::is_same_v<T, float>) {
    if (stream) return function.template operator()<true>();
  }
  function.template operator()<false>();
}

void statistics_any(const StatisticsPass& pass) {
  with_element_type(pass.rows.type, [&]<typename T>() { statistics<T>(pass); });
}

void normalize_any(const NormalizePass& pass) {
  with_element_type(pass.rows.type, [&]<typename T>() {
    const auto with_relu = [&]<bool kResidual, bool kRelu>() {
      with_stream<T>(pass.stream, [&]<bool kStream>() { normalize<T, kResidual, kRelu, kStream>(pass); });
    };
    if (pass.residual != nullptr) {
      pass.relu ? with_relu.template operator()<true, true>() : with_relu.template operator()<true, false>();
    } else {
      pass.relu ? with_relu.template operator()<false, true>()
                : with_relu.template operator()<false, false>();
    }
  });
}

void gradient_sums_any(const GradientSumsPass& pass) {
  with_element_type(pass.rows.type, [&]<typename T>() {
    with_source(pass.source, [&]<bool kSum, Mask kMask>() { gradient_sums<T, kSum, kMask>(pass); });
  });
}

void input_gradient_any(const InputGradientPass& pass) {
  with_element_type(pass.rows.type, [&]<typename T>() {
    with_source(pass.source, [&]<bool kSum, Mask kMask>() {
      with_stream<T>(pass.stream, [&]<bool kStream>() { input_gradient<T, kSum, kMask, kStream>(pass); });
    });
  });
}

}  // namespace HWY_NAMESPACE
}  // namespace tessera::cpu
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace tessera::cpu {

HWY_EXPORT(statistics_any);
HWY_EXPORT(normalize_any);
HWY_EXPORT(gradient_sums_any);
HWY_EXPORT(input_gradient_any);

void run_pass(const StatisticsPass& pass) {
  HWY_DYNAMIC_DISPATCH(statistics_any)(pass);
}
void run_pass(const NormalizePass& pass) {
  HWY_DYNAMIC_DISPATCH(normalize_any)(pass);
}
void run_pass(const GradientSumsPass& pass) {
  HWY_DYNAMIC_DISPATCH(gradient_sums_any)(pass);
}
void run_pass(const InputGradientPass& pass) {
  HWY_DYNAMIC_DISPATCH(input_gradient_any)(pass);
}

}  // namespace tessera::cpu
#endif
