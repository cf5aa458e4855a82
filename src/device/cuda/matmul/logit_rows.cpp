#include "device/cuda/matmul/logit_rows.h"

#include <algorithm>

#include "tessera/base/rounding.h"

namespace tessera::cuda {
namespace {

constexpr int64_t kNoticedBytes = int64_t{256} << 20;
constexpr int64_t kParts = 4;
// A whole number of the tiles of a product, and enough of them for all multiprocessors.
constexpr int64_t kTile = 128;
constexpr int64_t kLeastRows = 1024;

}  // namespace

int64_t logit_rows(const Node& product) {
  const TensorType& logits = product.output()->type();
  const int64_t rows = logits.element_count() / logits.static_shape().back();
  if (!is_half(logits.data_type) || logits.bytes() < kNoticedBytes) return rows;
  return std::max(kLeastRows, round_up(rows, kParts * kTile) / kParts);
}

}  // namespace tessera::cuda
