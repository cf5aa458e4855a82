// Attention in 16 bits and its gradient by cuDNN, which keeps the scores on the chip and reads heads wherever
// they lie.
#include "device/cuda/attention/cudnn_attention.h"

#include "tessera/device/common/kernel_table.h"
#include "tessera/device/common/refusal.h"
#include "tessera/device/common/roles.h"
#include "tessera/graph/operator.h"

#include "device/cuda/attention/placed_attention.h"
#include "device/cuda/cudnn/plan_cache.h"

namespace tessera::cuda {
namespace {

using backend::refuse_unless;

// What cuDNN is known to refuse, where it can be known without a GPU.
void check(const AttentionProblem& problem, const GpuTraits& gpu) {
  refuse_unless(problem.type == DataType::fp16 || problem.type == DataType::bf16,
                "cuDNN's attention is of fp16 and bf16");
  refuse_unless(!problem.dropout.has_value(), "dropout by other numbers than cuDNN's");
  // Of 390 keys the log_sum differed from run to run, in fp16 by cuDNN 9.19 on an H200.
  refuse_unless(problem.queries > 1 || !problem.key_lengths, "a single query beside lengths of keys");
  for (const int64_t extent :
       {problem.batch, problem.heads, problem.key_heads, problem.queries, problem.keys}) {
    refuse_unless(extent > 0, "a tensor without elements");
  }
  const int64_t widest = gpu.architecture / 10 == 9 ? 256 : 128;
  for (const int64_t width : {problem.width, problem.value_width}) {
    refuse_unless(width > 0 && width % 8 == 0 && width <= widest,
                  "a width of {}, where multiples of 8 up to {} are taken", width, widest);
  }
  refuse_unless(!problem.gradient || problem.queries > 1 || problem.keys > 1,
                "the gradient of one query and key");
  if (!problem.bias_gradient) return;
  refuse_unless(!problem.key_lengths, "the gradient of a bias beside lengths of keys");
  refuse_unless(problem.bias->batch == problem.batch && problem.bias->heads == problem.heads,
                "the gradient of a bias that is added to several scores");
  // Of this nothing was measured either.
  refuse_unless(problem.key_heads == problem.heads,
                "the gradient of a bias beside {} heads of keys for {} of queries", problem.key_heads,
                problem.heads);
  // Before 9.5 it took multiples of 64 alone; of others than these nothing was measured.
  refuse_unless(problem.queries % 32 == 0 && problem.keys % 8 == 0,
                "the gradient of a bias of {} queries and {} keys, where multiples of 32 and 8 are taken",
                problem.queries, problem.keys);
}

class CudnnAttention : public Kernel {
 public:
  CudnnAttention(PlacedAttention problem, std::shared_ptr<CudnnPlan> plan)
      : problem_(std::move(problem)), plan_(std::move(plan)) {}

  int64_t workspace_bytes() const override { return plan_ == nullptr ? 0 : plan_->workspace_bytes(); }

  void run(const KernelArguments& arguments) override {
    PlanOperands operands;
    const auto give = [&](const PlacedOperand& placed, const void* memory) {
      operands.push_back({.number = static_cast<int64_t>(placed.operand),
                          .memory = static_cast<const std::byte*>(memory) + placed.offset_bytes()});
    };
    for (const PlacedOperand& placed : problem_.inputs) give(placed, arguments.inputs[placed.place]);
    for (const PlacedOperand& placed : problem_.outputs) give(placed, arguments.outputs[placed.place]);
    plan_->run(operands, arguments.workspace, arguments.queue);
  }

 private:
  PlacedAttention problem_;
  std::shared_ptr<CudnnPlan> plan_;  // null where the GPU is not there
};

KernelCandidate candidate(const std::string& name, Context& context, int64_t choice) {
  const auto plan = [&context, choice](const KernelRequest& request) -> KernelMaker {
    const PlacedAttention found = read_attention(request);
    check(found.problem, context.traits());
    // Every choice asks for the first plan: it knows how many there are.
    const std::shared_ptr<CudnnPlan> first = plan_of(context, found.problem.plan_problem(), 0);
    refuse_unless(choice == 0 || first != nullptr, "plans are counted on the GPU only");
    if (first != nullptr) refuse_unless(choice < first->choices(), "cuDNN names {} plans", first->choices());
    return [&context, choice, found] {
      return std::make_unique<CudnnAttention>(found, plan_of(context, found.problem.plan_problem(), choice));
    };
  };
  KernelCandidate result =
      backend::checked_candidate(choice == 0 ? name : fmt::format("{}#{}", name, choice), plan);
  result.only_tuned = choice > 0;
  return result;
}

}  // namespace

std::vector<KernelCandidate> cudnn_attention_candidates(const Node& node, Context& context) {
  constexpr int64_t kPlans = 4;
  const std::string name =
      backend::has_role(node, "output_gradient") ? "cudnn.attention_gradient" : "cudnn.attention";
  std::vector<KernelCandidate> result;
  for (int64_t choice = 0; choice < kPlans; ++choice) result.push_back(candidate(name, context, choice));
  return result;
}

namespace {

bool is_taken(const AttentionProblem& problem, const GpuTraits& gpu) {
  return backend::unless_refused([&] {
           check(problem, gpu);
           return true;
         })
      .has_value();
}

}  // namespace

bool is_attention_of_cudnn(const Node& attention, const GpuTraits& gpu) {
  return is_taken(attention_problem_of(attention), gpu);
}

bool makes_bias_gradient_by_cudnn(const Node& gradient, const GpuTraits& gpu) {
  AttentionProblem problem = attention_problem_of(gradient);
  problem.bias_gradient = true;
  return is_taken(problem, gpu);
}

}  // namespace tessera::cuda
