// argmax and top_k. A NaN counts as larger than every number; of equal elements the first wins.
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <numeric>
#include <type_traits>
#include <vector>

#include "tessera/graph/operator.h"

#include "device/cpu/loops/loop_kernel.h"
#include "device/cpu/runtime/parallel.h"

namespace tessera::cpu {
namespace {

// 16-bit floats compare as floats.
template <typename T>
auto comparable(T value) {
  if constexpr (std::is_same_v<T, bool>) {
    return static_cast<uint8_t>(value);  // no operator takes it, but a vector of it would be one of bits
  } else if constexpr (std::is_arithmetic_v<T>) {
    return value;
  } else {
    return static_cast<float>(value);
  }
}

template <typename T>
bool before(T a, T b) {
  if constexpr (std::is_floating_point_v<T>) {
    return std::isnan(a) ? !std::isnan(b) : a > b;
  } else {
    return a > b;
  }
}

// x: [outer, extent, inner]; rows of `inner` results are searched together.
template <typename T>
void argmax_block(const T* x, const AxisView& view, int32_t* out) {
  using C = decltype(comparable(T()));
  if (view.inner == 1) {
    C best = comparable(x[0]);
    int32_t place = 0;
    for (int64_t i = 1; i < view.extent; ++i) {
      const C element = comparable(x[i]);
      if (!before(element, best)) continue;
      best = element;
      place = static_cast<int32_t>(i);
    }
    *out = place;
    return;
  }
  std::vector<C> best(static_cast<size_t>(view.inner));
  for (int64_t j = 0; j < view.inner; ++j) best[static_cast<size_t>(j)] = comparable(x[j]);
  std::fill_n(out, view.inner, 0);
  for (int64_t i = 1; i < view.extent; ++i) {
    for (int64_t j = 0; j < view.inner; ++j) {
      const C element = comparable(x[i * view.inner + j]);
      if (!before(element, best[static_cast<size_t>(j)])) continue;
      best[static_cast<size_t>(j)] = element;
      out[j] = static_cast<int32_t>(i);
    }
  }
}

LoopKernel argmax(const Node& node) {
  const AxisView view = view_along(node.input(0)->type().static_shape(), node.attributes().integer("axis"));
  const DataType type = node.input(0)->data_type();
  return {.run = [view, type](const KernelArguments& arguments) {
    dispatch(type, [&]<typename T>() {
      const T* x = static_cast<const T*>(arguments.inputs[0]);
      auto* out = static_cast<int32_t*>(arguments.outputs[0]);
      const int64_t block = view.extent * view.inner;
      if (block == 0) return;
      for_each_part(std::min(part_count(view.outer * block), view.outer), view.outer,
                    [&](int64_t, int64_t begin, int64_t end) {
                      for (int64_t k = begin; k < end; ++k) {
                        argmax_block(x + k * block, view, out + k * view.inner);
                      }
                    });
    });
  }};
}

LoopKernel top_k(const Node& node) {
  const AxisView view = view_along(node.input(0)->type().static_shape(), -1);
  const DataType type = node.input(0)->data_type();
  const int64_t k = node.attributes().integer("k");
  return {.run = [view, type, k](const KernelArguments& arguments) {
    dispatch(type, [&]<typename T>() {
      const T* x = static_cast<const T*>(arguments.inputs[0]);
      T* values = static_cast<T*>(arguments.outputs[0]);
      auto* indices = static_cast<int32_t*>(arguments.outputs[1]);
      if (view.outer == 0) return;
      for_each_part(std::min(part_count(view.outer * view.extent), view.outer), view.outer,
                    [&](int64_t, int64_t begin, int64_t end) {
                      std::vector<int32_t> order(static_cast<size_t>(view.extent));
                      for (int64_t row = begin; row < end; ++row) {
                        const T* own = x + row * view.extent;
                        std::iota(order.begin(), order.end(), 0);
                        std::partial_sort(order.begin(), order.begin() + k, order.end(),
                                          [&](int32_t a, int32_t b) {
                                            const auto first = comparable(own[a]);
                                            const auto second = comparable(own[b]);
                                            if (before(first, second)) return true;
                                            return !before(second, first) && a < b;
                                          });
                        for (int64_t i = 0; i < k; ++i) {
                          indices[row * k + i] = order[static_cast<size_t>(i)];
                          values[row * k + i] = own[order[static_cast<size_t>(i)]];
                        }
                      }
                    });
    });
  }};
}

const LoopRegistration kArgmax("argmax", argmax);
const LoopRegistration kTopK("top_k", top_k);

}  // namespace
}  // namespace tessera::cpu
