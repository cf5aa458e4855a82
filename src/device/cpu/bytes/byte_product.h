// Products of bytes with sums in int32, for what oneDNN refuses or would round: packing and the way through
// panels.
#pragma once

#include <algorithm>
#include <cstdint>

#include "tessera/base/data_type.h"
#include "tessera/base/rounding.h"

#include "device/cpu/panels/panel_product.h"

namespace tessera::cpu {

// Sums over `depth` products for each of `columns`. Widened, the depth is made even, and the columns of the
// right factor stand in panels.
struct ByteProduct {
  int64_t depth = 0;
  int64_t columns = 0;

  int64_t row() const { return round_up(depth, int64_t{2}); }  // elements of a widened row
  int64_t panel() const { return std::min(panel_width(), round_up(columns, vector_width())); }
  int64_t panels() const { return quotient_rounded_up(columns, panel()); }
  int64_t packed_panel() const { return row() * panel(); }
  int64_t packed() const { return panels() * packed_panel(); }  // elements of the widened right factor
  int64_t sums() const { return kPanelRows * panel(); }         // what multiply() takes for itself
};

// One of the factors as it is stored: the element for column or row i and place t is at
// data[i * stride + t * depth_stride].
struct StoredBytes {
  DataType type = DataType::int8;
  const void* data = nullptr;
  int64_t stride = 0;
  int64_t depth_stride = 1;
};

// `count` elements of the row or column `index`.
void widen_bytes(const StoredBytes& bytes, int64_t index, int64_t count, int16_t* to);

// One panel of the right factor, into packed[row() / 2, panel(), 2].
void pack_panel(const ByteProduct& product, const StoredBytes& right, int64_t panel, int16_t* packed);

// y[i, column] = the sum, and bias[column] where there is one, for each of `rows` widened rows.
struct ByteRows {
  const int16_t* left = nullptr;  // [rows, row()]
  int64_t rows = 0;
  const int16_t* packed = nullptr;  // all panels
  const int32_t* bias = nullptr;
  int32_t* sums = nullptr;  // scratch
  int32_t* y = nullptr;
  int64_t y_row = 0;
};
void multiply(const ByteProduct& product, const ByteRows& rows);

}  // namespace tessera::cpu
