// Attention in 16 bits and its gradient by cuDNN, which keeps the scores on the chip. For what it refuses,
// products and clusters (backend::attention_rules) come after.
#include "tessera/device/common/kernel_table.h"
#include "tessera/device/common/refusal.h"
#include "tessera/graph/operator.h"

#include "device/cuda/cudnn/cudnn_attention_graph.h"
#include "device/cuda/cudnn/plan_cache.h"
#include "device/cuda/kernel_registry.h"

namespace tessera::cuda {
namespace {

using backend::refuse_unless;
using Operand = AttentionOperand;

// As the operators have their inputs and outputs; the bias may be missing.
struct Signature {
  std::vector<Operand> inputs;
  std::vector<Operand> outputs;
};
const Signature& signature_of(bool gradient) {
  static const Signature forward{{Operand::q, Operand::k, Operand::v, Operand::bias},
                                 {Operand::y, Operand::log_sum}};
  static const Signature backward{
      {Operand::dy, Operand::q, Operand::k, Operand::v, Operand::y, Operand::log_sum, Operand::bias},
      {Operand::dq, Operand::dk, Operand::dv}};
  return gradient ? backward : forward;
}

// What cuDNN is known to refuse, where it can be known without a GPU.
void check(const AttentionProblem& problem, const GpuTraits& gpu) {
  refuse_unless(problem.type == DataType::fp16 || problem.type == DataType::bf16,
                "cuDNN's attention is of fp16 and bf16");
  for (const int64_t extent : {problem.batch, problem.heads, problem.queries, problem.keys}) {
    refuse_unless(extent > 0, "a tensor without elements");
  }
  const int64_t widest = gpu.architecture / 10 == 9 ? 256 : 128;
  for (const int64_t width : {problem.width, problem.value_width}) {
    refuse_unless(width > 0 && width % 8 == 0 && width <= widest,
                  "a width of {}, where multiples of 8 up to {} are taken", width, widest);
  }
  refuse_unless(!problem.gradient || problem.queries > 1 || problem.keys > 1,
                "the gradient of one query and key");
}

AttentionProblem make_problem(const KernelRequest& request, const GpuTraits& gpu) {
  const Node& node = request.node;
  AttentionProblem problem;
  problem.gradient = node.operator_name() == "attention_gradient";
  const size_t first = problem.gradient ? 1 : 0;
  const Shape q = node.input(first)->type().static_shape();
  const Shape v = node.input(first + 2)->type().static_shape();
  problem.type = node.input(first)->data_type();
  problem.batch = q[0];
  problem.heads = q[1];
  problem.queries = q[2];
  problem.keys = v[2];
  problem.width = q[3];
  problem.value_width = v[3];
  problem.scale = node.attributes().real("scale");
  problem.causal = node.attributes().boolean("causal");
  const size_t bias = signature_of(problem.gradient).inputs.size() - 1;
  if (node.inputs().size() > bias) {
    const Shape shape = node.input(bias)->type().static_shape();
    problem.bias = {.batch = shape[0], .heads = shape[1]};
  }
  problem.deterministic = request.deterministic;
  check(problem, gpu);
  return problem;
}

class CudnnAttention : public Kernel {
 public:
  CudnnAttention(const Signature& signature, std::shared_ptr<CudnnPlan> plan)
      : signature_(signature), plan_(std::move(plan)) {}

  int64_t workspace_bytes() const override { return plan_ == nullptr ? 0 : plan_->workspace_bytes(); }

  void run(const KernelArguments& arguments) override {
    PlanOperands operands;
    const auto give = [&](Operand operand, const void* memory) {
      operands.push_back({.number = static_cast<int64_t>(operand), .memory = memory});
    };
    for (size_t i = 0; i < arguments.inputs.size(); ++i) give(signature_.inputs[i], arguments.inputs[i]);
    for (size_t i = 0; i < arguments.outputs.size(); ++i) give(signature_.outputs[i], arguments.outputs[i]);
    plan_->run(operands, arguments.workspace, arguments.queue);
  }

 private:
  const Signature& signature_;
  std::shared_ptr<CudnnPlan> plan_;  // null where the GPU is not there
};

std::vector<KernelCandidate> candidates(const Node& node, Context& context) {
  const auto plan = [&context](const KernelRequest& request) -> KernelMaker {
    const AttentionProblem problem = make_problem(request, context.traits());
    return [&signature = signature_of(problem.gradient), plan = plan_of(context, problem.plan_problem(), 0)] {
      return std::make_unique<CudnnAttention>(signature, plan);
    };
  };
  return {backend::checked_candidate("cudnn." + node.operator_name(), plan)};
}

const CudaKernelRegistration kForward({.key = "attention", .candidates = candidates, .tunable = true});
const CudaKernelRegistration kGradient({.key = "attention_gradient",
                                        .candidates = candidates,
                                        .tunable = true});

}  // namespace
}  // namespace tessera::cuda
