#include "device/cpu/normalization/batch_norm.h"

#include <cmath>

#include "device/cpu/runtime/caches.h"
#include "device/cpu/runtime/parallel.h"

namespace tessera::cpu {
namespace {

constexpr int64_t kMostBlocks = 64;

}  // namespace

ActivationRows::ActivationRows(const TensorType& tensor) : type(tensor.data_type) {
  channels = tensor.static_shape().back();
  const int64_t rows = tensor.element_count() / channels;
  const int64_t least = std::max(quotient_rounded_up(rows, kMostBlocks), kElementsPerThread / channels);
  blocks = cut_into_panels(rows, round_up(least, kSummedRows));
}

bool ActivationRows::stream() const {
  // Whole rows of whole vectors, so that every store is aligned.
  return type == DataType::fp32 && channels % 16 == 0 && rows() * channels * 4 >= kStreamBytes;
}

float normalizing_factor(float scale, float variance, double epsilon) {
  return static_cast<float>(static_cast<double>(scale) / std::sqrt(static_cast<double>(variance) + epsilon));
}

void add_blocks(int64_t blocks, int64_t channels, double* sums) {
  for (int64_t block = 1; block < blocks; ++block) {
    for (int64_t i = 0; i < 2 * channels; ++i) sums[i] += sums[block * 2 * channels + i];
  }
}

}  // namespace tessera::cpu
