#include "device/cpu/panels/loop_activation.h"

#include <numbers>

#include "device/cpu/runtime/highway_targets.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "device/cpu/panels/loop_activation.cpp"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

#include "device/cpu/cluster/cluster_math-inl.h"
#include "device/cpu/runtime/vector_memory-inl.h"

HWY_BEFORE_NAMESPACE();
namespace tessera::cpu {
namespace HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;
namespace {

// The operators' formulas.
struct Gelu {
  template <class D, class V>
  V operator()(D d, V x) const {
    const V part = erf_float(d, hn::Mul(x, hn::Set(d, static_cast<float>(1 / std::numbers::sqrt2))));
    const V half = hn::Mul(x, hn::Set(d, 0.5F));
    return hn::MulAdd(half, part, half);
  }
};

// 1 / sigmoid(x)
template <class D, class V>
HWY_INLINE V sigmoid_divisor(D d, V x) {
  return hn::Add(hn::Set(d, 1.0F), exp_minus_float(d, x));
}

// (1 + tanh(t)) / 2 is sigmoid(2 t).
struct GeluTanh {
  template <class D, class V>
  V operator()(D d, V x) const {
    const V cubic = hn::MulAdd(hn::Mul(x, x), hn::Set(d, 0.044715F), hn::Set(d, 1.0F));
    const auto scale = static_cast<float>(2 * std::numbers::inv_sqrtpi * std::numbers::sqrt2);
    const V twice = hn::Mul(hn::Mul(x, cubic), hn::Set(d, scale));
    return hn::Div(x, sigmoid_divisor(d, twice));
  }
};

struct Silu {
  template <class D, class V>
  V operator()(D d, V x) const {
    return hn::Div(x, sigmoid_divisor(d, x));
  }
};

struct HardSwish {
  template <class D, class V>
  V operator()(D d, V x) const {
    const V shifted = hn::MulAdd(x, hn::Set(d, 1.0F / 6), hn::Set(d, 0.5F));
    return hn::Mul(x, minimum_or_nan(maximum_or_nan(shifted, hn::Zero(d)), hn::Set(d, 1.0F)));
  }
};

struct Sigmoid {
  template <class D, class V>
  V operator()(D d, V x) const {
    return hn::Div(hn::Set(d, 1.0F), sigmoid_divisor(d, x));
  }
};

template <typename Function>
void over_rows(float* y, int64_t row, int64_t rows, int64_t width) {
  for (int64_t i = 0; i < rows; ++i, y += row) {
    for_each_vector(width,
                    [&](auto d, int64_t j) { hn::StoreU(Function()(d, hn::LoadU(d, y + j)), d, y + j); });
  }
}

void apply(LoopActivation activation, float* y, int64_t row, int64_t rows, int64_t width) {
  switch (activation) {
    case LoopActivation::none:
      return;
    case LoopActivation::gelu:
      return over_rows<Gelu>(y, row, rows, width);
    case LoopActivation::gelu_tanh:
      return over_rows<GeluTanh>(y, row, rows, width);
    case LoopActivation::silu:
      return over_rows<Silu>(y, row, rows, width);
    case LoopActivation::hard_swish:
      return over_rows<HardSwish>(y, row, rows, width);
    case LoopActivation::sigmoid:
      return over_rows<Sigmoid>(y, row, rows, width);
  }
}

}  // namespace
}  // namespace HWY_NAMESPACE
}  // namespace tessera::cpu
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace tessera::cpu {

HWY_EXPORT(apply);

void activate(LoopActivation activation, float* y, int64_t row, int64_t rows, int64_t width) {
  HWY_DYNAMIC_DISPATCH(apply)(activation, y, row, rows, width);
}

}  // namespace tessera::cpu
#endif
