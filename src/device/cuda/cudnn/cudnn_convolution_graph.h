// Convolutions and their gradients as graphs of cuDNN's.
#pragma once

#include <limits>
#include <string>
#include <vector>

#include "tessera/base/data_type.h"

#include "device/cuda/cudnn/cudnn_graph.h"

namespace tessera::cuda {

enum class ConvolutionKind { forward, data_gradient, weight_gradient };
enum class ConvolutionActivation { none, relu, silu, sigmoid };

// What is computed, in the graph's own order of axes: x [N, spatial..., C], weight [K, spatial..., C/groups],
// y [N, spatial..., K].
struct ConvolutionProblem {
  ConvolutionKind kind = ConvolutionKind::forward;
  DataType type = DataType::fp32;
  std::vector<int64_t> x;
  std::vector<int64_t> weight;
  std::vector<int64_t> y;
  std::vector<int64_t> strides;
  std::vector<int64_t> padding_low;
  std::vector<int64_t> padding_high;
  std::vector<int64_t> dilations;
  int64_t groups = 1;
  bool tf32 = false;  // fp32 operands may be rounded to TF32
  bool deterministic = true;
  // What follows, in this order; each in the type of the result.
  bool bias = false;      // [K]; of forward
  bool residual = false;  // as the result; of forward and the data gradient
  ConvolutionActivation activation = ConvolutionActivation::none;  // of forward
  double relu_limit = std::numeric_limits<double>::infinity();     // relu's from above
  bool mask = false;  // of the data gradient: zero where this tensor, of the result's shape, is not above 0
  bool statistics = false;  // of forward: sums of the result and of its squares, fp32 [K]

  std::string key() const;
  PlanProblem plan_problem() const;
};

// Device memory; null for what the problem does not have.
struct ConvolutionOperands {
  // x and weight (forward), dy and weight (data gradient), x and dy (weight gradient).
  const void* first = nullptr;
  const void* second = nullptr;
  const void* bias = nullptr;
  const void* residual = nullptr;
  const void* mask = nullptr;
  void* result = nullptr;
  void* sums = nullptr;
  void* squares = nullptr;

  PlanOperands numbered() const;
};

}  // namespace tessera::cuda
