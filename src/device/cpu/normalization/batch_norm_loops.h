// The passes over memory that batch normalization is made of, for some of the rows. Activations are [rows,
// channels]; per-channel numbers are fp32. Sums are kept in fp32 over some rows and added up in double.
#pragma once

#include <cstdint>

#include "tessera/base/data_type.h"

namespace tessera::cpu {

// Rows that are summed in fp32.
inline constexpr int64_t kSummedRows = 64;

// Rows to work on, of an activation's type.
struct RowRange {
  DataType type = DataType::fp32;
  int64_t channels = 0;
  int64_t begin = 0;
  int64_t end = 0;
};

// sums[c] = sum(x - shift), sums[channels + c] = sum((x - shift)^2)
struct StatisticsPass {
  RowRange rows;
  const void* x = nullptr;
  const float* shift = nullptr;  // near the mean, so that nothing cancels
  float* summed = nullptr;       // scratch: 2 * channels
  double* sums = nullptr;        // 2 * channels
};
void run_pass(const StatisticsPass& pass);

// y = (x - mean) * factor + bias: [channels] each.
struct ChannelAffine {
  const float* mean = nullptr;
  const float* factor = nullptr;
  const float* bias = nullptr;
};

// y = affine(x), plus the residual, then relu when asked for.
struct NormalizePass {
  RowRange rows;
  const void* x = nullptr;
  const void* residual = nullptr;  // may be null
  void* y = nullptr;
  ChannelAffine affine;
  bool relu = false;
  bool stream = false;  // write past the caches
};
void run_pass(const NormalizePass& pass);

// The gradient of y on its way to the normalization: dz = dy [+ dy2], zero where the relu after it was
// closed.
struct GradientSource {
  const void* dy = nullptr;
  const void* dy2 = nullptr;  // may be null
  // The relu was open where y > 0, or where affine(x) > 0; neither: there was no relu.
  const void* y = nullptr;
  ChannelAffine affine;
};

// sums[c] = sum(dz), sums[channels + c] = sum(dz * (x - mean)); writes dz when it is given.
struct GradientSumsPass {
  RowRange rows;
  GradientSource source;
  const void* x = nullptr;
  void* dz = nullptr;  // may be null, and may be dy
  const float* mean = nullptr;
  float* summed = nullptr;
  double* sums = nullptr;
};
void run_pass(const GradientSumsPass& pass);

// dx = dz * by_gradient + (x - mean) * by_input + constant
struct InputGradientPass {
  RowRange rows;
  GradientSource source;
  const void* x = nullptr;
  void* dx = nullptr;  // may be dy or x
  const float* mean = nullptr;
  const float* by_gradient = nullptr;
  const float* by_input = nullptr;
  const float* constant = nullptr;
  bool stream = false;
};
void run_pass(const InputGradientPass& pass);

}  // namespace tessera::cpu
