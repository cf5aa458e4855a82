#include "device/cpu/batch_norm.h"

#include <cmath>

#include "device/cpu/parallel.h"

namespace tessera::cpu {

ActivationRows::ActivationRows(const TensorType& tensor) : type(tensor.data_type) {
  channels = tensor.static_shape().back();
  rows = tensor.element_count() / channels;
  parts = std::min(part_count(rows * channels), rows);
}

bool ActivationRows::stream() const {
  // Whole rows of whole vectors, so that every store is aligned.
  return type == DataType::fp32 && channels % 16 == 0 && rows * channels * 4 >= kStreamBytes;
}

float normalising_factor(float scale, float variance, double epsilon) {
  return static_cast<float>(static_cast<double>(scale) / std::sqrt(static_cast<double>(variance) + epsilon));
}

void add_parts(int64_t parts, int64_t channels, double* sums) {
  for (int64_t part = 1; part < parts; ++part) {
    for (int64_t i = 0; i < 2 * channels; ++i) sums[i] += sums[part * 2 * channels + i];
  }
}

}  // namespace tessera::cpu
