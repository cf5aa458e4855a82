// Normalizations of training and their gradients as graphs of cuDNN's.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "tessera/base/data_type.h"

#include "device/cuda/cudnn/cudnn_graph.h"

namespace tessera::cuda {

enum class NormKind { batch_norm, batch_norm_gradient, layer_norm, layer_norm_gradient };

// Statistics are the mean and 1 / sqrt(variance + epsilon), in fp32 as scale and bias are. batch_norm:
// x [N, spatial..., C], all else [C]. layer_norm: x [rows, elements], scale and bias [elements], statistics
// [rows].
struct NormProblem {
  NormKind kind = NormKind::batch_norm;
  DataType type = DataType::fp16;  // of x, the result and their gradients
  std::vector<int64_t> x;
  double epsilon = 0;
  bool residual = false;  // of batch_norm: added to the result
  bool relu = false;      // of batch_norm, after the sum
  bool sum = false;       // of batch_norm_gradient: dy is the sum of two tensors
  bool mask = false;      // of batch_norm_gradient: zero where the relu's result is not above 0
  bool deterministic = true;

  std::string key() const;
  PlanProblem plan_problem() const;
};

// Numbers for PlanOperands. `relu` is the relu's result, read for its mask.
enum class NormOperand : int64_t {
  x = 1,
  scale,
  bias,
  mean,
  inverse_deviation,
  residual,
  result,
  dy,
  dy2,
  relu,
  dx,
  dscale,
  dbias
};

}  // namespace tessera::cuda
