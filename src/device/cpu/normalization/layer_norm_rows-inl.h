// What the kernels of layer norms share: sums over a row, and dropout by rows. Included once per instruction
// set.
#ifndef TESSERA_LAYER_NORM_DROPOUT_ROWS
#define TESSERA_LAYER_NORM_DROPOUT_ROWS
#include "tessera/device/common/residual_layer_norm.h"

#include "device/cpu/cluster/cluster_loops.h"
#include "device/cpu/kernel_registry.h"

namespace tessera::cpu {

// What dropout does to a range of rows: numbers are drawn into `uniform`, as many as a row has elements.
struct DropoutRows {
  uint64_t seed = 0;
  uint64_t stream = 0;
  float rate = 0;
  float factor = 1;
  float* uniform = nullptr;
};

inline DropoutRows dropout_rows(const std::optional<backend::DropoutBody>& body,
                                const KernelArguments& arguments, float* uniform) {
  if (!body.has_value()) return {};
  const auto* counter = static_cast<const int64_t*>(arguments.inputs[body->counter]);
  return {.seed = static_cast<uint64_t>(counter[0]),
          .stream = step_stream(body->stream, counter[1]),
          .rate = body->rate,
          .factor = body->factor,
          .uniform = uniform};
}

// Null for none.
inline const void* optional_input(const KernelArguments& arguments, std::optional<size_t> index) {
  return index.has_value() ? arguments.inputs[*index] : nullptr;
}
inline void* optional_output(const KernelArguments& arguments, std::optional<size_t> index) {
  return index.has_value() ? arguments.outputs[*index] : nullptr;
}
inline float* optional_floats(const KernelArguments& arguments, std::optional<size_t> index) {
  return static_cast<float*>(optional_output(arguments, index));
}

}  // namespace tessera::cpu
#endif

#if defined(TESSERA_LAYER_NORM_ROWS_INL_H) == defined(HWY_TARGET_TOGGLE)
#ifdef TESSERA_LAYER_NORM_ROWS_INL_H
#undef TESSERA_LAYER_NORM_ROWS_INL_H
#else
#define TESSERA_LAYER_NORM_ROWS_INL_H
#endif

#include <hwy/highway.h>

#include "device/cpu/runtime/vector_memory-inl.h"

HWY_BEFORE_NAMESPACE();
namespace tessera::cpu {
namespace HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

// Vectors that enter a partial sum before it goes into a double.
constexpr int64_t kRun = 32;

struct TwoSums {
  double first = 0;
  double second = 0;
};

template <class D>
HWY_INLINE double lanes_added(D d, hn::Vec<D> v) {
  HWY_ALIGN float lanes[hn::MaxLanes(d)];
  hn::Store(v, d, lanes);
  double sum = 0;
  for (size_t k = 0; k < hn::Lanes(d); ++k) sum += static_cast<double>(lanes[k]);
  return sum;
}

// add(d, c, first, second) adds what the elements from c on contribute.
template <class Add>
HWY_INLINE TwoSums sums_over(int64_t count, Add&& add) {
  const hn::ScalableTag<float> d;
  const hn::CappedTag<float, 1> one;
  const auto lanes = static_cast<int64_t>(hn::Lanes(d));
  TwoSums result;
  int64_t c = 0;
  while (c + lanes <= count) {
    auto first = hn::Zero(d);
    auto second = hn::Zero(d);
    for (int64_t k = 0; k < kRun && c + lanes <= count; ++k, c += lanes) add(d, c, first, second);
    result.first += lanes_added(d, first);
    result.second += lanes_added(d, second);
  }
  for (; c < count; ++c) {
    auto first = hn::Zero(one);
    auto second = hn::Zero(one);
    add(one, c, first, second);
    result.first += static_cast<double>(hn::GetLane(first));
    result.second += static_cast<double>(hn::GetLane(second));
  }
  return result;
}

HWY_INLINE void draw(const DropoutRows& dropout, int64_t first, int64_t count) {
  constexpr int kBits = 24;  // random_uniform's in fp32
  random_uniform(dropout.seed, dropout.stream, kBits, static_cast<uint64_t>(first), dropout.uniform, count);
}

template <class D>
HWY_INLINE hn::Vec<D> dropped(D d, const DropoutRows& dropout, int64_t c, hn::Vec<D> value) {
  const auto kept = hn::Ge(hn::LoadU(d, dropout.uniform + c), hn::Set(d, dropout.rate));
  return hn::IfThenElseZero(kept, hn::Mul(value, hn::Set(d, dropout.factor)));
}

}  // namespace HWY_NAMESPACE
}  // namespace tessera::cpu
HWY_AFTER_NAMESPACE();

#endif
