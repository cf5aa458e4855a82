// Convolutions by cuDNN's graph API: what plans are, and how cuDNN makes them. The one file behind this
// header is the only one that includes cudnn-frontend.
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
  // What follows, in this order; each in the type of the result.
  bool bias = false;      // [K]; of forward
  bool shortcut = false;  // as the result; of forward and the data gradient
  bool relu = false;      // of forward
  bool mask = false;  // of the data gradient: zero where this tensor, of the result's shape, is not above 0
  bool statistics = false;  // of forward: sums of the result and of its squares, fp32 [K]

  // Text that tells problems apart, in this process and on disk.
  std::string key() const;
};

// Device memory; null for what the problem does not have.
struct ConvolutionOperands {
  // x and weight (forward), dy and weight (data gradient), x and dy (weight gradient).
  const void* first = nullptr;
  const void* second = nullptr;
  const void* bias = nullptr;
  const void* shortcut = nullptr;
  const void* mask = nullptr;
  void* result = nullptr;
  void* sums = nullptr;
  void* squares = nullptr;
};

// A plan as it is kept on disk.
struct SavedPlan {
  int64_t choices = 0;
  std::string text;  // cuDNN's own; empty where cuDNN cannot write the plan down
  bool operator==(const SavedPlan&) const = default;
};

// A compiled plan. Thread-compatible; runs on the context's stream.
class ConvolutionPlan {
 public:
  virtual ~ConvolutionPlan() = default;
  virtual int64_t workspace_bytes() const = 0;
  // How many plans for the problem there are to choose from.
  virtual int64_t choices() const = 0;
  virtual SavedPlan saved() const = 0;
  virtual void run(const ConvolutionOperands& operands, void* workspace) = 0;
};

// Builds the plan that the heuristics name in place `choice`, with 0 the first that is supported. Not counted
// are plans that keep partial sums in 16 bits, those whose sums vary where the problem is to be
// deterministic, and those that round fp32 operands where it does not allow that. Throws Error(unsupported)
// with cuDNN's reason. May be called by several threads.
std::shared_ptr<ConvolutionPlan> build_cudnn_plan(Context& context, const ConvolutionProblem& problem,
                                                  int64_t choice);
// The same plan again from what was saved. Throws Error(unsupported) for what cuDNN does not take, or what is
// now left out.
std::shared_ptr<ConvolutionPlan> load_cudnn_plan(Context& context, const ConvolutionProblem& problem,
                                                 const SavedPlan& saved);

std::string cudnn_version();
// Of the headers that describe the problems to cuDNN.
std::string cudnn_frontend_version();

}  // namespace tessera::cuda
