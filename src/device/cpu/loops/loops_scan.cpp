// cumulative_sum along any axis.
#include <algorithm>
#include <array>
#include <cstdint>
#include <limits>
#include <type_traits>

#include "tessera/base/rounding.h"
#include "tessera/graph/operator.h"

#include "device/cpu/loops/loop_kernel.h"
#include "device/cpu/runtime/parallel.h"

namespace tessera::cpu {
namespace {

constexpr int64_t kColumns = 64;  // that are summed side by side: a cache line or more of each row

template <typename T>
using Sum = std::conditional_t<std::is_integral_v<T>, int64_t, double>;

template <typename T>
Sum<T> widened(T element) {
  if constexpr (std::is_arithmetic_v<T>) {
    return static_cast<Sum<T>>(element);
  } else {
    return static_cast<float>(element);
  }
}

template <typename T>
T stored(Sum<T> sum) {
  if constexpr (std::is_integral_v<T>) {
    using Limits = std::numeric_limits<T>;
    return static_cast<T>(std::clamp<int64_t>(sum, Limits::lowest(), Limits::max()));
  } else {
    return static_cast<T>(static_cast<std::conditional_t<std::is_arithmetic_v<T>, T, float>>(sum));
  }
}

struct Direction {
  bool exclusive;
  bool reverse;
};

// Some columns of x: [extent, inner].
template <typename T>
void sum_columns(const T* x, T* y, const AxisView& view, int64_t columns, Direction direction) {
  std::array<Sum<T>, kColumns> sums{};
  for (int64_t step = 0; step < view.extent; ++step) {
    const int64_t start = (direction.reverse ? view.extent - 1 - step : step) * view.inner;
    for (int64_t j = 0; j < columns; ++j) {
      const Sum<T> before = sums[static_cast<size_t>(j)];
      const Sum<T> sum = before + widened(x[start + j]);
      y[start + j] = stored<T>(direction.exclusive ? before : sum);
      sums[static_cast<size_t>(j)] = sum;
    }
  }
}

LoopKernel cumulative_sum(const Node& node) {
  const AxisView view = view_along(node.input(0)->type().static_shape(), node.attributes().integer("axis"));
  const DataType type = node.input(0)->data_type();
  const Direction direction{node.attributes().boolean("exclusive"), node.attributes().boolean("reverse")};
  return {.run =
              [=](const KernelArguments& arguments) {
                dispatch(type, [&]<typename T>() {
                  const T* x = static_cast<const T*>(arguments.inputs[0]);
                  T* y = static_cast<T*>(arguments.outputs[0]);
                  const int64_t elements = view.outer * view.extent * view.inner;
                  if (elements == 0) return;
                  const int64_t groups = quotient_rounded_up(view.inner, kColumns);
                  const int64_t work = view.outer * groups;
                  for_each_part(std::min(part_count(elements), work), work,
                                [&](int64_t, int64_t begin, int64_t end) {
                                  for (int64_t k = begin; k < end; ++k) {
                                    const int64_t column = k % groups * kColumns;
                                    const int64_t start = k / groups * view.extent * view.inner + column;
                                    sum_columns(x + start, y + start, view,
                                                std::min(kColumns, view.inner - column), direction);
                                  }
                                });
                });
              },
          .overwrites = 0};
}

const LoopRegistration kCumulativeSum("cumulative_sum", cumulative_sum);

}  // namespace
}  // namespace tessera::cpu
