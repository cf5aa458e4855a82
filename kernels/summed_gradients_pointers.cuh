// What the two kernels for the gradients of a pointwise convolution that opens a residual block read and
// write.
#pragma once

#include "types.cuh"

namespace tessera {

template <typename T>
struct SummedGradientsPointers {
  const T* dy;            // [pixels, narrow]
  const T* weight;        // [narrow, wide]
  const T* input;         // [pixels, wide]; where it is positive, the mask lets the gradient through
  const T* addend;        // [pixels, wide]
  const T* x[2];          // [pixels, wide], of each normalization
  const float* mean[2];   // [wide]
  const float* scale[2];  // [wide], as the next two: where the mask is recomputed
  const float* bias[2];
  const float* variance[2];
  T* result;            // [pixels, wide]
  float* weight_parts;  // [blocks of a slice, narrow, wide], to be added up to the weight gradient
  float* sum_parts;  // [1 + norms, blocks of a slice, wide]: of the result, and of its products with x - mean
};

}  // namespace tessera
