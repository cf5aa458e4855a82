// rotary_embedding, a head after the other.
#include <algorithm>
#include <vector>

#include "tessera/device/common/rotary_rows.h"
#include "tessera/graph/operator.h"

#include "device/cpu/cluster/cluster_loops.h"
#include "device/cpu/loops/loop_kernel.h"
#include "device/cpu/loops/row_loops.h"
#include "device/cpu/runtime/parallel.h"

namespace tessera::cpu {
namespace {

struct RotaryOrder {
  bool interleaved;
  bool inverse;
};

// Of one row; y may be x.
template <typename T>
void rotate_row(const RowLoops<T>& loops, const T* x, const T* cosines, const T* sines, T* y, int64_t half,
                RotaryOrder order) {
  if (!order.interleaved) {
    const int64_t first = order.inverse ? half : 0, second = half - first;
    return loops.rotate(x + first, x + second, cosines, sines, y + first, y + second, half);
  }
  for (int64_t i = 0; i < half; ++i) {
    const int64_t first = 2 * i + (order.inverse ? 1 : 0), second = 4 * i + 1 - first;
    const T a = x[first], b = x[second];
    y[first] = a * cosines[i] - b * sines[i];
    y[second] = b * cosines[i] + a * sines[i];
  }
}

// What is not in T comes into it and goes back some rows at a time, which stay in the cache.
constexpr int64_t kElementsAtATime = 2048;

template <typename T>
void rotate_rows(DataType type, const backend::RotaryRows& at, RotaryOrder order,
                 const KernelArguments& arguments) {
  const auto* x = static_cast<const char*>(arguments.inputs[0]);
  const auto* cosines = static_cast<const T*>(arguments.inputs[1]);
  const auto* sines = static_cast<const T*>(arguments.inputs[2]);
  auto* y = static_cast<char*>(arguments.outputs[0]);
  const RowLoops<T>& loops = row_loops(T());
  const int64_t width = 2 * at.half;
  const auto rotate = [&](int64_t row, int64_t rows, const T* from, T* to) {
    for (int64_t i = 0; i < rows; ++i) {
      const int64_t angles = at.angles_of(row + i) * at.half;
      rotate_row(loops, from + i * width, cosines + angles, sines + angles, to + i * width, at.half, order);
    }
  };
  const int64_t parts = std::min(part_count(at.rows * width), at.rows);
  if (DataTypeOf<T>::value == type)
    return for_each_part(parts, at.rows, [&](int64_t, int64_t begin, int64_t end) {
      rotate(begin, end - begin, reinterpret_cast<const T*>(x) + begin * width,
             reinterpret_cast<T*>(y) + begin * width);
    });
  const Loop load = find_load(type), store = find_store(type);
  const int64_t step = std::max<int64_t>(kElementsAtATime / width, 1);
  const int64_t row_bytes = width * static_cast<int64_t>(size_of(type));
  for_each_part(parts, at.rows, [&](int64_t, int64_t begin, int64_t end) {
    std::vector<T> kept(static_cast<size_t>(step * width));
    for (int64_t row = begin; row < end; row += step) {
      const int64_t rows = std::min(step, end - row);
      const void* source = x + row * row_bytes;
      load(kept.data(), &source, rows * width);
      rotate(row, rows, kept.data(), kept.data());
      source = kept.data();
      store(y + row * row_bytes, &source, rows * width);
    }
  });
}

LoopKernel rotary_embedding(const Node& node) {
  const backend::RotaryRows rows = backend::rotary_rows(node);
  const DataType type = node.input(0)->data_type();
  const RotaryOrder order{node.attributes().boolean("interleaved"), node.attributes().boolean("inverse")};
  return {.run =
              [=](const KernelArguments& arguments) {
                if (rows.rows == 0) return;
                if (type == DataType::fp64) {
                  rotate_rows<double>(type, rows, order, arguments);
                } else {
                  rotate_rows<float>(type, rows, order, arguments);
                }
              },
          .overwrites = 0};
}

const LoopRegistration kRotaryEmbedding("rotary_embedding", rotary_embedding);

}  // namespace
}  // namespace tessera::cpu
