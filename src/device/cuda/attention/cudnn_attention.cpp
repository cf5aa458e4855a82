// Attention in 16 bits and its gradient by cuDNN, which keeps the scores on the chip and reads heads wherever
// they lie. For what it refuses, products and clusters (backend::attention_rules) come after.
#include "device/cuda/attention/cudnn_attention.h"

#include "tessera/device/common/attention_patterns.h"
#include "tessera/device/common/kernel_table.h"
#include "tessera/device/common/moved_view.h"
#include "tessera/device/common/refusal.h"
#include "tessera/device/common/roles.h"
#include "tessera/graph/operator.h"

#include "device/cuda/cudnn/cudnn_attention_graph.h"
#include "device/cuda/cudnn/plan_cache.h"
#include "device/cuda/kernel_registry.h"

namespace tessera::cuda {
namespace {

using backend::refuse_unless;
using Operand = AttentionOperand;

struct Role {
  Operand operand;
  std::string_view name;
};

// The roles of the inputs and outputs; the bias may be missing.
struct Signature {
  std::vector<Role> inputs;
  std::vector<Role> outputs;
};
const Signature& signature_of(bool gradient) {
  static const Signature forward{
      {{Operand::q, "q"}, {Operand::k, "k"}, {Operand::v, "v"}, {Operand::bias, "bias"}},
      {{Operand::y, "y"}, {Operand::log_sum, "log_sum"}}};
  static const Signature backward{
      {{Operand::dy, "output_gradient"},
       {Operand::q, "q"},
       {Operand::k, "k"},
       {Operand::v, "v"},
       {Operand::y, "y"},
       {Operand::log_sum, "log_sum"},
       {Operand::bias, "bias"}},
      {{Operand::dq, "q_gradient"}, {Operand::dk, "k_gradient"}, {Operand::dv, "v_gradient"}}};
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

// Of attention or its gradient, with all operands in row-major order.
AttentionProblem problem_of(const Node& attention) {
  AttentionProblem problem;
  problem.gradient = attention.operator_name() == "attention_gradient";
  const size_t first = problem.gradient ? 1 : 0;
  const Shape q = attention.input(first)->type().static_shape();
  const Shape v = attention.input(first + 2)->type().static_shape();
  problem.type = attention.input(first)->data_type();
  problem.batch = q[0];
  problem.heads = q[1];
  problem.queries = q[2];
  problem.keys = v[2];
  problem.width = q[3];
  problem.value_width = v[3];
  problem.scale = attention.attributes().real("scale");
  problem.causal = attention.attributes().boolean("causal");
  const size_t bias = signature_of(problem.gradient).inputs.size() - 1;
  if (attention.inputs().size() > bias) {
    const Shape shape = attention.input(bias)->type().static_shape();
    problem.bias = {.batch = shape[0], .heads = shape[1]};
  }
  return problem;
}

// Memory of a kernel, by the number of the operand that begins there.
struct PlacedOperand {
  Operand operand;
  size_t place = 0;    // among the inputs, or the outputs
  int64_t offset = 0;  // in bytes
};

struct PlacedProblem {
  AttentionProblem problem;
  std::vector<PlacedOperand> inputs;
  std::vector<PlacedOperand> outputs;
};

// Of one operator, or of one with what moves its operands and results.
PlacedProblem read(const KernelRequest& request, const GpuTraits& gpu) {
  const Node& node = request.node;
  const bool is_gradient = backend::has_role(node, "output_gradient");
  const Signature& signature = signature_of(is_gradient);
  PlacedProblem found{.problem = problem_of(backend::maker_of_role(node, signature.outputs.front().name)),
                      .inputs = {},
                      .outputs = {}};
  found.problem.deterministic = request.deterministic;
  check(found.problem, gpu);
  const auto placed = [&](const Role& role, const backend::PlacedView& where) {
    const DataType type = backend::in_role(node, role.name).data_type();
    const Shape& strides = where.view.memory.strides;
    if (strides != row_major_strides(where.view.shape)) {
      refuse_unless(backend::has_aligned_rows(where.view, type, backend::kAttentionRowAlignment),
                    "the rows of '{}' begin at no multiples of {} bytes", role.name,
                    backend::kAttentionRowAlignment);
      found.problem.strides[role.operand] = strides;
    }
    return PlacedOperand{.operand = role.operand,
                         .place = where.place,
                         .offset = where.view.memory.offset * static_cast<int64_t>(size_of(type))};
  };
  for (const Role& role : signature.inputs) {
    if (backend::has_role(node, role.name))
      found.inputs.push_back(placed(role, backend::view_in_input(node, role.name)));
  }
  for (const Role& role : signature.outputs)
    found.outputs.push_back(placed(role, backend::view_in_output(node, role.name)));
  return found;
}

class CudnnAttention : public Kernel {
 public:
  CudnnAttention(PlacedProblem problem, std::shared_ptr<CudnnPlan> plan)
      : problem_(std::move(problem)), plan_(std::move(plan)) {}

  int64_t workspace_bytes() const override { return plan_ == nullptr ? 0 : plan_->workspace_bytes(); }

  void run(const KernelArguments& arguments) override {
    PlanOperands operands;
    const auto give = [&](const PlacedOperand& placed, const void* memory) {
      operands.push_back({.number = static_cast<int64_t>(placed.operand),
                          .memory = static_cast<const std::byte*>(memory) + placed.offset});
    };
    for (const PlacedOperand& placed : problem_.inputs) give(placed, arguments.inputs[placed.place]);
    for (const PlacedOperand& placed : problem_.outputs) give(placed, arguments.outputs[placed.place]);
    plan_->run(operands, arguments.workspace, arguments.queue);
  }

 private:
  PlacedProblem problem_;
  std::shared_ptr<CudnnPlan> plan_;  // null where the GPU is not there
};

KernelCandidate candidate(const std::string& name, Context& context, int64_t choice) {
  const auto plan = [&context, choice](const KernelRequest& request) -> KernelMaker {
    const PlacedProblem found = read(request, context.traits());
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

std::vector<KernelCandidate> candidates(const Node& node, Context& context) {
  constexpr int64_t kPlans = 4;
  const std::string name =
      backend::has_role(node, "output_gradient") ? "cudnn.attention_gradient" : "cudnn.attention";
  std::vector<KernelCandidate> result;
  for (int64_t choice = 0; choice < kPlans; ++choice) result.push_back(candidate(name, context, choice));
  return result;
}

const CudaKernelRegistration kForward({.key = "attention", .candidates = candidates, .tunable = true});
const CudaKernelRegistration kGradient({.key = "attention_gradient",
                                        .candidates = candidates,
                                        .tunable = true});
const CudaKernelRegistration kMovedForward({.key = "fused:attention",
                                            .candidates = candidates,
                                            .tunable = true});
const CudaKernelRegistration kMovedGradient({.key = "fused:attention_gradient",
                                             .candidates = candidates,
                                             .tunable = true});

}  // namespace

bool is_attention_of_cudnn(const Node& attention, const GpuTraits& gpu) {
  return backend::unless_refused([&] {
           check(problem_of(attention), gpu);
           return true;
         })
      .has_value();
}

}  // namespace tessera::cuda
