// Convolutions by cuDNN's graph API. The one file behind this header is the only one that includes
// cudnn-frontend.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "tessera/base/data_type.h"

#include "device/cuda/context.h"

namespace tessera::cuda {

enum class ConvolutionKind { forward, data_gradient, weight_gradient };

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
  // Of forward: what follows, in this order; each in the type of the result.
  bool bias = false;      // [K]
  bool shortcut = false;  // as y
  bool relu = false;

  // Text that tells problems apart.
  std::string key() const;
};

// A compiled plan. Thread-compatible; runs on the context's stream.
class ConvolutionPlan {
 public:
  virtual ~ConvolutionPlan() = default;
  virtual int64_t workspace_bytes() const = 0;
  // How many plans the heuristics named for the problem.
  virtual int64_t choices() const = 0;
  // first and second: x and weight (forward), dy and weight (data gradient), x and dy (weight gradient).
  virtual void run(const void* first, const void* second, const void* bias, const void* shortcut,
                   void* result, void* workspace) = 0;
};

// Builds the plan that the heuristics name in place `choice`, with 0 the first that is supported; plans of
// one problem are shared. Throws Error(unsupported) with cuDNN's reason.
std::shared_ptr<ConvolutionPlan> convolution_plan(Context& context, const ConvolutionProblem& problem,
                                                  int64_t choice = 0);

std::string cudnn_version();

}  // namespace tessera::cuda
