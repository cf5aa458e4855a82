// combine_rows and set_rows: what updates by rows are made of.
#include <algorithm>
#include <cstring>
#include <numeric>
#include <type_traits>

#include "tessera/graph/operator.h"

#include "device/cpu/loops/indices.h"
#include "device/cpu/loops/loop_kernel.h"
#include "device/cpu/runtime/parallel.h"

namespace tessera::cpu {
namespace {

// Places of equal indices beside each other, each time from the first on.
void sort_places(const Indices& indices, int64_t* places, int64_t count) {
  std::iota(places, places + count, int64_t{0});
  std::sort(places, places + count, [&](int64_t a, int64_t b) {
    const int64_t left = indices[a];
    const int64_t right = indices[b];
    return left != right ? left < right : a < b;
  });
}

// The sum of some rows, one column after the other where they are narrower than the sums.
template <typename T>
void sum_rows(const int64_t* places, int64_t count, const T* rows, int64_t width, T* sum) {
  if constexpr (std::is_arithmetic_v<T>) {
    std::copy_n(rows + places[0] * width, width, sum);
    for (int64_t i = 1; i < count; ++i) {
      for (int64_t column = 0; column < width; ++column) sum[column] += rows[places[i] * width + column];
    }
  } else {
    for (int64_t column = 0; column < width; ++column) {
      float total = 0;
      for (int64_t i = 0; i < count; ++i) total += static_cast<float>(rows[places[i] * width + column]);
      sum[column] = T(total);
    }
  }
}

// A thread that begins within a run of equal indices leaves it to the one before. Each place is written once.
template <typename T, typename I>
void combine(const I* indices, const int64_t* places, int64_t count, const T* rows, int64_t width, I* first,
             T* sums) {
  const auto index_at = [&](int64_t i) { return indices[places[i]]; };
  for_each_part(part_count(count * width), count, [&](int64_t, int64_t begin, int64_t end) {
    while (begin > 0 && begin < end && index_at(begin) == index_at(begin - 1)) ++begin;
    for (int64_t start = begin, next = begin; start < end; start = next) {
      for (next = start + 1; next < count && index_at(next) == index_at(start);) ++next;
      first[places[start]] = index_at(start);
      sum_rows(places + start, next - start, rows, width, sums + places[start] * width);
      for (int64_t i = start + 1; i < next; ++i) {
        first[places[i]] = -1;
        std::fill_n(sums + places[i] * width, width, T(0.0F));
      }
    }
  });
}

LoopKernel combine_rows(const Node& node) {
  const DataType index_type = node.input(0)->data_type();
  const DataType type = node.input(1)->data_type();
  const int64_t count = node.input(0)->type().element_count();
  const int64_t width = view_along(node.input(1)->type().static_shape(), 0).inner;
  LoopKernel kernel;
  kernel.workspace_bytes = count * static_cast<int64_t>(sizeof(int64_t));
  kernel.run = [=](const KernelArguments& arguments) {
    auto* places = static_cast<int64_t*>(arguments.workspace);
    sort_places(Indices(index_type, arguments.inputs[0]), places, count);
    dispatch(type, [&]<typename T>() {
      const auto run = [&]<typename I>(const I* indices) {
        combine(indices, places, count, static_cast<const T*>(arguments.inputs[1]), width,
                static_cast<I*>(arguments.outputs[0]), static_cast<T*>(arguments.outputs[1]));
      };
      if constexpr (!std::is_integral_v<T>) {
        if (index_type == DataType::int64) {
          run(static_cast<const int64_t*>(arguments.inputs[0]));
        } else {
          run(static_cast<const int32_t*>(arguments.inputs[0]));
        }
      }
    });
  };
  return kernel;
}

// Each thread owns a range of the table's rows and takes the new ones in their order.
LoopKernel set_rows(const Node& node) {
  const DataType index_type = node.input(1)->data_type();
  const AxisView view = view_along(node.output()->type().static_shape(), 0);
  const int64_t count = node.input(1)->type().element_count();
  const auto bytes = view.inner * static_cast<int64_t>(size_of(node.output()->data_type()));
  LoopKernel kernel;
  kernel.overwrites = 0;
  kernel.run = [extent = view.extent, index_type, count, bytes](const KernelArguments& arguments) {
    const Indices indices(index_type, arguments.inputs[1]);
    const auto* rows = static_cast<const char*>(arguments.inputs[2]);
    auto* out = static_cast<char*>(arguments.outputs[0]);
    if (out != arguments.inputs[0]) {
      const auto* table = static_cast<const char*>(arguments.inputs[0]);
      for_each_part(part_count(extent * bytes), extent, [&](int64_t, int64_t begin, int64_t end) {
        std::memcpy(out + begin * bytes, table + begin * bytes, static_cast<size_t>((end - begin) * bytes));
      });
    }
    const int64_t parts = std::min(part_count(count * bytes), std::max<int64_t>(extent, 1));
    for_each_part(parts, extent, [&](int64_t, int64_t begin, int64_t end) {
      for (int64_t row = 0; row < count; ++row) {
        const int64_t index = indices[row];
        if (index >= begin && index < end)
          std::memcpy(out + index * bytes, rows + row * bytes, static_cast<size_t>(bytes));
      }
    });
  };
  return kernel;
}

const LoopRegistration kCombineRows("combine_rows", combine_rows);
const LoopRegistration kSetRows("set_rows", set_rows);

}  // namespace
}  // namespace tessera::cpu
