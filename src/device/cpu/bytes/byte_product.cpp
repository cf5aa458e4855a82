#include "device/cpu/bytes/byte_product.h"

#include "device/cpu/bytes/byte_panel.h"

namespace tessera::cpu {

namespace {

template <typename T>
void widen(const T* from, int64_t step, int64_t count, int64_t step_of_result, int16_t* to) {
  // NOLINTNEXTLINE(bugprone-signed-char-misuse): an int8 in a wider type is its sign extension
  for (int64_t i = 0; i < count; ++i) to[i * step_of_result] = from[i * step];
}

void widen(const StoredBytes& bytes, int64_t first, int64_t step, int64_t count, int64_t step_of_result,
           int16_t* to) {
  if (bytes.type == DataType::int8) {
    widen(static_cast<const int8_t*>(bytes.data) + first, step, count, step_of_result, to);
  } else {
    widen(static_cast<const uint8_t*>(bytes.data) + first, step, count, step_of_result, to);
  }
}

}  // namespace

void widen_bytes(const StoredBytes& bytes, int64_t index, int64_t count, int16_t* to) {
  widen(bytes, index * bytes.stride, bytes.depth_stride, count, 1, to);
}

void pack_panel(const ByteProduct& product, const StoredBytes& right, int64_t panel, int16_t* packed) {
  const int64_t width = product.panel();
  const int64_t first = panel * width;
  const int64_t columns = std::min(width, product.columns - first);
  if (columns < width || product.depth % 2 != 0) std::fill_n(packed, product.packed_panel(), int16_t{0});
  for (int64_t t = 0; t < product.depth; ++t) {
    widen(right, first * right.stride + t * right.depth_stride, right.stride, columns, 2,
          packed + t / 2 * 2 * width + t % 2);
  }
}

void multiply(const ByteProduct& product, const ByteRows& rows) {
  const int64_t width = product.panel();
  for (int64_t panel = 0; panel < product.panels(); ++panel) {
    const int64_t first = panel * width;
    const int64_t columns = std::min(width, product.columns - first);
    for (int64_t row = 0; row < rows.rows; row += kPanelRows) {
      const int64_t count = std::min(kPanelRows, rows.rows - row);
      multiply_panel({.left = rows.left + row * product.row(),
                      .packed = rows.packed + panel * product.packed_panel(),
                      .sums = rows.sums,
                      .rows = count,
                      .row = product.row(),
                      .panel = width});
      for (int64_t i = 0; i < count; ++i) {
        const int32_t* sums = rows.sums + i * width;
        int32_t* y = rows.y + (row + i) * rows.y_row + first;
        for (int64_t column = 0; column < columns; ++column) {
          const int64_t bias = rows.bias == nullptr ? 0 : rows.bias[first + column];
          y[column] = static_cast<int32_t>(sums[column] + bias);
        }
      }
    }
  }
}

}  // namespace tessera::cpu
