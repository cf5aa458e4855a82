// gather, scatter_add and one_hot.
#include <algorithm>
#include <cstring>
#include <type_traits>

#include "tessera/graph/operator.h"

#include "device/cpu/cluster/cluster_loops.h"
#include "device/cpu/loops/indices.h"
#include "device/cpu/loops/loop_kernel.h"
#include "device/cpu/runtime/parallel.h"

namespace tessera::cpu {
namespace {

// An index outside reads some row, but never memory outside the table.
LoopKernel gather(const Node& node) {
  const AxisView view = view_along(node.input(0)->type().static_shape(), node.attributes().integer("axis"));
  const int64_t rows = node.input(1)->type().element_count();
  const auto bytes = view.inner * static_cast<int64_t>(size_of(node.input(0)->data_type()));
  const DataType index_type = node.input(1)->data_type();
  return {.run = [view, rows, bytes, index_type](const KernelArguments& arguments) {
    if (view.extent == 0) return;
    const Indices indices(index_type, arguments.inputs[1]);
    const auto* table = static_cast<const char*>(arguments.inputs[0]);
    auto* out = static_cast<char*>(arguments.outputs[0]);
    const int64_t total = view.outer * rows;
    for_each_part(part_count(total * view.inner), total, [&](int64_t, int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; ++i) {
        const int64_t row = std::clamp<int64_t>(indices[i % rows], 0, view.extent - 1);
        std::memcpy(out + i * bytes, table + (i / rows * view.extent + row) * bytes,
                    static_cast<size_t>(bytes));
      }
    });
  }};
}

// Each thread owns a range of result rows and takes the updates in their order: the same bits whatever the
// threads do. Indices outside fall into nobody's range.
template <typename T>
void scatter_rows(const Indices& indices, int64_t rows, int64_t extent, int64_t inner, const T* updates,
                  T* sums) {
  const int64_t parts = std::min(part_count(std::max(rows, extent) * inner), std::max<int64_t>(extent, 1));
  for_each_part(parts, extent, [&](int64_t, int64_t begin, int64_t end) {
    std::fill(sums + begin * inner, sums + end * inner, T(0));
    for (int64_t row = 0; row < rows; ++row) {
      const int64_t index = indices[row];
      if (index < begin || index >= end) continue;
      const T* update = updates + row * inner;
      T* sum = sums + index * inner;
      for (int64_t i = 0; i < inner; ++i) {
        if constexpr (std::is_integral_v<T>) {
          sum[i] = static_cast<T>(static_cast<uint64_t>(sum[i]) + static_cast<uint64_t>(update[i]));
        } else {
          sum[i] += update[i];
        }
      }
    }
  });
}

// 16-bit updates are summed in fp32: the workspace holds them and the sums.
LoopKernel scatter_add(const Node& node) {
  const DataType type = node.input(1)->data_type();
  const DataType index_type = node.input(0)->data_type();
  const int64_t rows = node.input(0)->type().element_count();
  const int64_t extent = node.output()->type().static_shape()[0];
  const int64_t results = node.output()->type().element_count();
  const int64_t inner = extent == 0 ? 0 : results / extent;
  const bool narrow = is_half(type);
  LoopKernel kernel;
  kernel.workspace_bytes = narrow ? (results + rows * inner) * 4 : 0;
  kernel.run = [=](const KernelArguments& arguments) {
    const Indices indices(index_type, arguments.inputs[0]);
    if (narrow) {
      auto* sums = static_cast<float*>(arguments.workspace);
      float* updates = sums + results;
      find_load(type)(updates, &arguments.inputs[1], rows * inner);
      scatter_rows<float>(indices, rows, extent, inner, updates, sums);
      const void* source = sums;
      find_store(type)(arguments.outputs[0], &source, results);
      return;
    }
    dispatch(type, [&]<typename T>() {
      if constexpr (std::is_arithmetic_v<T> && !std::is_same_v<T, bool>) {
        scatter_rows<T>(indices, rows, extent, inner, static_cast<const T*>(arguments.inputs[1]),
                        static_cast<T*>(arguments.outputs[0]));
      }
    });
  };
  return kernel;
}

LoopKernel one_hot(const Node& node) {
  const DataType type = node.output()->data_type();
  const DataType index_type = node.input(0)->data_type();
  const int64_t rows = node.input(0)->type().element_count();
  const int64_t depth = node.attributes().integer("depth");
  return {.run = [=](const KernelArguments& arguments) {
    const Indices indices(index_type, arguments.inputs[0]);
    dispatch(type, [&]<typename T>() {
      T one;
      if constexpr (std::is_arithmetic_v<T>) {
        one = T(1);
      } else {
        one = T(1.0f);
      }
      T* out = static_cast<T*>(arguments.outputs[0]);
      for_each_part(part_count(rows * depth), rows, [&](int64_t, int64_t begin, int64_t end) {
        std::memset(static_cast<void*>(out + begin * depth), 0,
                    static_cast<size_t>((end - begin) * depth) * sizeof(T));
        for (int64_t row = begin; row < end; ++row) {
          const int64_t index = indices[row];
          if (index >= 0 && index < depth) out[row * depth + index] = one;
        }
      });
    });
  }};
}

const LoopRegistration kGather("gather", gather);
const LoopRegistration kScatterAdd("scatter_add", scatter_add);
const LoopRegistration kOneHot("one_hot", one_hot);

}  // namespace
}  // namespace tessera::cpu
