// A graph in cuDNN's terms. Takes half a minute to compile: only the files that describe graphs include it.
#pragma once

#include <memory>
#include <vector>

#define NV_CUDNN_FRONTEND_USE_DYNAMIC_LOADING
#define CUDNN_FRONTEND_SKIP_JSON_LIB
#include <cudnn_frontend.h>

#include "tessera/base/data_type.h"

#include "device/cuda/cudnn/cudnn_graph.h"
#include "device/cuda/cudnn/plan_tensors.h"

namespace tessera::cuda {

namespace fe = cudnn_frontend;
using GraphTensor = std::shared_ptr<fe::graph::Tensor_attributes>;

// Refuses types that cuDNN does not compute with.
fe::DataType_t cudnn_type(DataType type);

class CudnnGraph : public fe::graph::Graph {
 public:
  // Of tensors in memory, and fp32 (fp64 for fp64) for what is between them.
  void set_type(DataType type);

  // A plan for what was described, as build_cudnn_plan() has it.
  std::shared_ptr<CudnnPlan> build(Context& context, const PlanProblem& problem, int64_t choice,
                                   cudnnHandle_t handle);

 private:
  // What cuDNN's frontend adds to the operands of the problem, and what the problem has filled.
  PlanTensors own_tensors(const Context& context, const PlanProblem& problem) const;
};

}  // namespace tessera::cuda
