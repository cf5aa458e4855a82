// cuDNN's graph API, for whatever is described to it: what plans are, and how cuDNN makes them. What a graph
// consists of is in one file for each kind (cudnn_convolution_graph.h, cudnn_attention_graph.h).
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "tessera/compile/queue.h"

#include "device/cuda/cudnn/saved_plan.h"
#include "device/cuda/runtime/context.h"

namespace tessera::cuda {

class CudnnGraph;

// What is asked of cuDNN.
struct PlanProblem {
  // Tells problems of all kinds apart, in this process and on disk.
  std::string key;
  // Plans that say so of themselves are left out.
  bool without_tensor_cores = false;  // they round fp32 operands
  bool without_varying_sums = true;   // they add in no fixed order
  bool without_narrow_sums = true;    // they keep partial sums in 16 bits
  // Operands that the plan itself has in its workspace: so many words of 32 bits, all of one value.
  struct Filled {
    int64_t number = 0;
    int64_t words = 0;
    uint32_t value = 0;
  };
  std::vector<Filled> filled = {};
  // Adds the problem's tensors and operations. Refuses what cuDNN has no words for.
  std::function<void(CudnnGraph& graph)> describe;
};

// Device memory by the number that the problem's kind gives an operand. What has no memory is left out.
struct PlanOperand {
  int64_t number = 0;
  const void* memory = nullptr;
};
using PlanOperands = std::vector<PlanOperand>;

// A compiled plan, which threads may share.
class CudnnPlan {
 public:
  virtual ~CudnnPlan() = default;
  virtual int64_t workspace_bytes() const = 0;
  // How many plans for the problem there are to choose from.
  virtual int64_t choices() const = 0;
  virtual SavedPlan saved() const = 0;
  virtual void run(const PlanOperands& operands, void* workspace, Queue& queue) = 0;
};

// Builds the plan that the heuristics name in place `choice`, with 0 the first that is supported; plans that
// the problem leaves out are not counted. Refuses with cuDNN's reason (device/common/refusal.h). May be
// called by several threads.
std::shared_ptr<CudnnPlan> build_cudnn_plan(Context& context, const PlanProblem& problem, int64_t choice);
// The same plan again from what was saved. Refuses what cuDNN does not take, or what is now left out.
std::shared_ptr<CudnnPlan> load_cudnn_plan(Context& context, const PlanProblem& problem,
                                           const SavedPlan& saved);

std::string cudnn_version();
// Of the headers that describe the problems to cuDNN.
std::string cudnn_frontend_version();

}  // namespace tessera::cuda
