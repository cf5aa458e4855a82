// What the kernels of few channels (few_channels.cuh, few_channel_gradient.cuh) multiply on the Tensor Cores,
// by the type of the elements: 16-bit numbers, or fp32 ones in TF32.
#pragma once

#include "matrix_products.cuh"

namespace tessera {

// How a warp multiplies pixels by 32 outputs on the Tensor Cores. Of a group of 8 pixels, a lane reads two
// neighboring elements of the units, two words for each step, at the pixel lane / 4 and the place
// 2 * (lane % 4); of the weights, twice four words. It ends with as many neighboring outputs as one access
// stores, for each of its results.
//
// 16-bit numbers: pixels are the rows, as the operand `a`, and the outputs are dealt to the columns.
template <typename T>
struct FewChannelProduct {
  static constexpr int step_units = 2;        // a word of each
  static constexpr int results_of_group = 1;  // of a lane, of a group of 8 pixels

  template <typename F>
  static __device__ uint2 words_of_run(const T* run, int step) {
    return {*reinterpret_cast<const uint32*>(run + F::offset_of(2 * step)),
            *reinterpret_cast<const uint32*>(run + F::offset_of(2 * step + 1))};
  }
  // The output, of 32, of a word of the weights.
  static __device__ int output_of_word(int pair, int word, int lane) {
    return dealt_column(4, 2 * pair + word / 2, lane / 4);
  }
  // `at`: the weight at a unit and a place in it.
  template <typename At>
  static __device__ uint32 word_of_weights(const At& at, int step, int word, int lane) {
    const int unit = 2 * step + word % 2, place = lane % 4 * 2;
    return pair_of(at(unit, place), at(unit, place + 1));
  }
  template <int Groups>
  static __device__ void multiply(float (&sums)[2 * Groups][4], const uint2 (&x)[Groups], int pair,
                                  const uint4& weights) {
#pragma unroll
    for (int group = 0; group < Groups; group += 2) {
      const uint32 a[4] = {x[group].x, x[group + 1].x, x[group].y, x[group + 1].y};
      multiply_16x8x16<T>(sums[2 * group + 2 * pair], a, weights.x, weights.y);
      multiply_16x8x16<T>(sums[2 * group + 2 * pair + 1], a, weights.z, weights.w);
    }
  }
  static __device__ int pixel_of(int lane, int result) {
    return 8 * result + lane / 4;
  }
  static __device__ int first_output(int lane) {
    return lane % 4 * 8;
  }
  template <int Tiles>
  static __device__ float sum_of(const float (&sums)[Tiles][4], int result, int output) {
    return sums[result / 2 * 4 + output / 2][result % 2 * 2 + output % 2];
  }
  // Over the lanes with the same outputs.
  static __device__ float sum_of_lanes(float value) {
    return sum_of_rows(value);
  }
};
// TF32: outputs are the rows, for then the words that a lane reads at once are what an operand has side by
// side in registers, be it the weights as `a` or the pixels as `b`.
template <>
struct FewChannelProduct<float> {
  static constexpr int step_units = 1;  // a word is an element
  static constexpr int results_of_group = 2;

  template <typename F>
  static __device__ uint2 words_of_run(const float* run, int step) {
    return *reinterpret_cast<const uint2*>(run + F::offset_of(step));
  }
  static __device__ int output_of_word(int pair, int word, int lane) {
    return lane / 4 * 4 + 2 * pair + word % 2;
  }
  template <typename At>
  static __device__ uint32 word_of_weights(const At& at, int step, int word, int lane) {
    return rounded_to_tf32(at(step, lane % 4 * 2 + word / 2));
  }
  template <int Groups>
  static __device__ void multiply(float (&sums)[2 * Groups][4], const uint2 (&x)[Groups], int pair,
                                  const uint4& weights) {
    const uint32 a[4] = {weights.x, weights.y, weights.z, weights.w};
#pragma unroll
    for (int group = 0; group < Groups; ++group)
      multiply_16x8x8(sums[2 * group + pair], a, x[group].x, x[group].y);
  }
  static __device__ int pixel_of(int lane, int result) {
    return result / 2 * 8 + lane % 4 * 2 + result % 2;
  }
  static __device__ int first_output(int lane) {
    return lane / 4 * 4;
  }
  template <int Tiles>
  static __device__ float sum_of(const float (&sums)[Tiles][4], int result, int output) {
    return sums[result / 2 * 2 + output / 2][output % 2 * 2 + result % 2];
  }
  static __device__ float sum_of_lanes(float value) {
#pragma unroll
    for (int distance = 1; distance < 4; distance *= 2)
      value += __shfl_xor_sync(0xffffffffu, value, distance);
    return value;
  }
};

// The gradients of 16 outputs per tile for so many pixels as one instruction adds over, as operands `a`, and
// the elements of x beside them, as `b`.
template <typename T, int Tiles>
struct FewChannelGradients {
  static constexpr int depth = 16;

  // Of the 16 x 16 gradients of a tile: rows of pixels, the second matrix 8 outputs on, the third 8 pixels
  // on.
  static __device__ const T* own_place(const T* gradients, int pitch, int lane) {
    return gradients + (lane % 8 + lane / 16 * 8) * pitch + lane / 8 % 2 * 8;
  }
  static __device__ void load(uint32 (&a)[Tiles][4], const T* from, int pitch) {
#pragma unroll
    for (int tile = 0; tile < Tiles; ++tile) load_transposed(a[tile], from + tile * 16);
  }

  // Where the windows of this lane's pixels begin.
  struct Windows {
    const T *even, *odd, *late_even, *late_odd;
  };
  static __device__ Windows windows_of(const T* x, const int* places, int lane) {
    const int2 low = *reinterpret_cast<const int2*>(places + lane % 4 * 2);
    const int2 high = *reinterpret_cast<const int2*>(places + 8 + lane % 4 * 2);
    return {x + low.x, x + low.y, x + high.x, x + high.y};
  }
  static __device__ uint2 column(const Windows& at, int offset) {
    return {pair_of(at.even[offset], at.odd[offset]), pair_of(at.late_even[offset], at.late_odd[offset])};
  }
  static __device__ void multiply(float (&sums)[4], const uint32 (&a)[4], uint2 b) {
    multiply_16x8x16<T>(sums, a, b.x, b.y);
  }
};
// There is no instruction that turns matrices of 32-bit numbers: they are read one by one.
template <int Tiles>
struct FewChannelGradients<float, Tiles> {
  static constexpr int depth = 8;

  static __device__ const float* own_place(const float* gradients, int pitch, int lane) {
    return gradients + lane % 4 * pitch + lane / 4;
  }
  static __device__ void load(uint32 (&a)[Tiles][4], const float* from, int pitch) {
#pragma unroll
    for (int tile = 0; tile < Tiles; ++tile) {
#pragma unroll
      for (int n = 0; n < 4; ++n)
        a[tile][n] = rounded_to_tf32(from[n / 2 * 4 * pitch + tile * 16 + n % 2 * 8]);
    }
  }

  struct Windows {
    const float *early, *late;
  };
  static __device__ Windows windows_of(const float* x, const int* places, int lane) {
    return {x + places[lane % 4], x + places[lane % 4 + 4]};
  }
  static __device__ uint2 column(const Windows& at, int offset) {
    return {__float_as_uint(at.early[offset]), __float_as_uint(at.late[offset])};
  }
  static __device__ void multiply(float (&sums)[4], const uint32 (&a)[4], uint2 b) {
    multiply_16x8x8(sums, a, b.x, b.y);
  }
};

}  // namespace tessera
