// What the batch normalisation kernels share: the activation as rows and per-channel scratch memory.
#pragma once

#include <cstdint>

#include "tessera/compile/kernel.h"

#include "device/cpu/batch_norm_loops.h"

namespace tessera::cpu {

// Results larger than this go past the caches: they would be gone before anything reads them.
inline constexpr int64_t kStreamBytes = int64_t{16} << 20;

struct ActivationRows {
  DataType type = DataType::fp32;
  int64_t rows = 0;
  int64_t channels = 0;
  int64_t parts = 1;  // into which the rows are divided

  explicit ActivationRows(const TensorType& tensor);
  RowRange range(int64_t begin, int64_t end) const { return {type, channels, begin, end}; }
  bool stream() const;
};

// Per-channel scratch memory, laid out once; the workspace is given at run time.
class ChannelScratch {
 public:
  explicit ChannelScratch(int64_t channels) : channels_(channels) {}
  // Books `arrays` arrays of one number per channel and returns the handle.
  size_t book_floats(int64_t arrays) { return book(arrays * channels_ * int64_t{sizeof(float)}); }
  size_t book_doubles(int64_t arrays) { return book(arrays * channels_ * int64_t{sizeof(double)}); }
  int64_t bytes() const { return static_cast<int64_t>(bytes_); }

  static float* floats(void* workspace, size_t handle) {
    return reinterpret_cast<float*>(static_cast<std::byte*>(workspace) + handle);
  }
  static double* doubles(void* workspace, size_t handle) {
    return reinterpret_cast<double*>(static_cast<std::byte*>(workspace) + handle);
  }

 private:
  size_t book(int64_t bytes) {
    const size_t handle = bytes_;
    bytes_ += (static_cast<size_t>(bytes) + 63) / 64 * 64;
    return handle;
  }

  int64_t channels_;
  size_t bytes_ = 0;
};

// scale / sqrt(variance + epsilon). The gradient finds out from the same numbers, bit for bit, where y was
// positive.
float normalising_factor(float scale, float variance, double epsilon);

// Sums of all parts: 2 numbers per channel and part, added in the order of the parts into the first.
void add_parts(int64_t parts, int64_t channels, double* sums);

}  // namespace tessera::cpu
