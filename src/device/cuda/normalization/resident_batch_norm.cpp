// Batch normalization by the batch's statistics and its gradients, each in one pass over device memory.
#include <optional>

#include <fmt/format.h>

#include "tessera/device/common/batch_norm_patterns.h"
#include "tessera/device/common/refusal.h"
#include "tessera/graph/operator.h"

#include "device/cuda/codegen/generated_kernel.h"
#include "device/cuda/kernel_registry.h"
#include "device/cuda/normalization/cudnn_norm.h"
#include "device/cuda/normalization/resident_plan.h"

namespace tessera::cuda {
namespace {

// One kernel of the plan's blocks. Inputs and outputs are fields of its work.
class ResidentProgram {
 public:
  ResidentProgram(const Node& node, const ResidentProblem& problem, const ResidentPlan& plan)
      : problem_(problem), plan_(plan), pointers_(node) {}

  void constant(std::string_view type, std::string_view name, const std::string& value) {
    constants_ += fmt::format("  static constexpr {} {} = {};\n", type, name, value);
  }
  void flag(std::string_view name, bool value) { constant("bool", name, value ? "true" : "false"); }

  void input(std::string_view field, std::optional<size_t> index) { pointers_.input(field, index); }
  void output(std::string_view field, std::optional<size_t> index) { pointers_.output(field, index); }

  GeneratedProgram finish(std::string_view work) {
    GeneratedProgram program;
    program.workspace_bytes = resident_workspace_bytes(problem_, plan_);
    Launch launch{.entry = "run", .blocks = plan_.blocks(), .threads = kResidentThreads, .arguments = {}};
    launch.resident = true;
    launch.shared_bytes = resident_shared_bytes(problem_, plan_);
    launch.arguments = pointers_.arguments();
    launch.arguments.push_back({Argument::Kind::workspace, 0});
    launch.arguments.push_back({Argument::Kind::counters, 0});
    program.counters = plan_.teams;
    program.source =
        fmt::format("#include \"batch_norm.cuh\"\nusing namespace tessera;\nstruct Plan {{\n{}{}}};\n",
                    resident_constants(problem_, plan_), constants_);
    program.source +=
        entry_text("run", kResidentThreads, pointers_.parameters() + ", float* parts, uint64* arrivals",
                   pointers_.filled(fmt::format("{}<Plan>", work), "work") +
                       "  run_resident<Plan>(work, parts, arrivals);\n",
                   kResidentBlocks);
    program.launches = {std::move(launch)};
    return program;
  }

 private:
  ResidentProblem problem_;
  ResidentPlan plan_;
  std::string constants_;
  PointerList pointers_;
};

ResidentProblem problem_of(const Value& x) {
  const Shape shape = x.type().static_shape();
  return {.type = x.data_type(), .rows = element_count(shape) / shape.back(), .channels = shape.back()};
}

GeneratedProgram forward(const Node& node, const ResidentProblem& problem, const ResidentPlan& plan) {
  const backend::BatchNormBody body = backend::read_batch_norm(node);
  ResidentProgram program(node, problem, plan);
  program.flag("has_residual", body.residual.has_value());
  program.flag("has_relu", body.relu);
  program.constant("float", "epsilon", float_literal(body.epsilon));
  program.input("x", body.x);
  program.input("residual", body.residual);
  program.input("scale", body.scale);
  program.input("bias", body.bias);
  program.output("y", 0);
  program.output("mean", body.mean);
  program.output("variance", body.variance);
  GeneratedProgram result = program.finish("BatchNormForward");
  // All blocks have read a place before they write it, and nothing else reads it.
  result.may_overwrite = [x = body.x, residual = body.residual](size_t output, size_t input) {
    return output == 0 && (input == x || input == residual);
  };
  return result;
}

GeneratedProgram backward(const Node& node, const ResidentProblem& problem, const ResidentPlan& plan) {
  const backend::BatchNormGradientBody body = backend::read_batch_norm_gradient(node);
  ResidentProgram program(node, problem, plan);
  program.flag("has_sum", body.dy2.has_value());
  program.flag("masks_by_result", body.y.has_value());
  program.flag("masks_by_x", body.bias.has_value());
  program.flag("emits", body.dz.has_value());
  program.constant("float", "epsilon", float_literal(body.epsilon));
  program.input("x", body.x);
  program.input("dy", body.dy);
  program.input("dy2", body.dy2);
  program.input("y", body.y);
  program.input("scale", body.scale);
  program.input("bias", body.bias);
  program.input("mean", body.mean);
  program.input("variance", body.variance);
  program.output("dx", body.dx);
  program.output("dscale", body.dscale);
  program.output("dbias", body.dbias);
  program.output("dz", body.dz);
  GeneratedProgram result = program.finish("BatchNormBackward");
  result.may_overwrite = [body](size_t output, size_t input) {
    const bool gradient = input == body.dy || input == body.dy2 || input == body.y;
    return (output == body.dx && (gradient || input == body.x)) || (output == body.dz && gradient);
  };
  return result;
}

// Two kernels read x twice and reach what the memory gives; one kernel must keep most of x to be faster,
// since its blocks wait for each other.
ResidentProblem forward_problem(const Node& node, const GpuTraits& gpu) {
  const ResidentProblem problem = problem_of(*node.input(backend::read_batch_norm(node).x));
  const double share = resident_plan(problem, gpu).held_share;
  constexpr double kLeastShare = 0.25;
  backend::refuse_unless(share >= kLeastShare,
                         "the multiprocessors hold {:.0f} % of x: two passes are faster", 100 * share);
  return problem;
}

ResidentProblem backward_problem(const Node& node, const GpuTraits&) {
  const backend::BatchNormGradientBody body = backend::read_batch_norm_gradient(node);
  backend::refuse_unless(body.dx.has_value(), "nothing reads the gradient of x");
  ResidentProblem problem = problem_of(*node.input(body.x));
  problem.kept = 2;
  problem.passing = body.dy2.has_value() + body.y.has_value();
  return problem;
}

using ProblemOf = ResidentProblem (*)(const Node& node, const GpuTraits& gpu);
using ProgramOf = GeneratedProgram (*)(const Node& node, const ResidentProblem& problem,
                                       const ResidentPlan& plan);

std::vector<KernelCandidate> candidates(const std::string& name, const Node& node, Context& context,
                                        ProblemOf problem_of_node, ProgramOf program_of) {
  const auto plan = [&context, problem_of_node, program_of](const KernelRequest& request) -> KernelMaker {
    const ResidentProblem problem = problem_of_node(request.node, context.traits());
    const ResidentPlan resident = resident_plan(problem, context.traits());
    return [program = program_of(request.node, problem, resident), &context] {
      return make_generated_kernel(context, program);
    };
  };
  return {backend::checked_candidate("resident." + name, plan), cudnn_norm_candidate(node, context)};
}

std::vector<KernelCandidate> forward_candidates(const Node& node, Context& context) {
  return candidates("batch_norm", node, context, forward_problem, forward);
}
std::vector<KernelCandidate> backward_candidates(const Node& node, Context& context) {
  return candidates("batch_norm_gradient", node, context, backward_problem, backward);
}

CudaKernels kernels(const std::string& key,
                    std::vector<KernelCandidate> (*candidates)(const Node& node, Context& context)) {
  return {.key = key, .candidates = candidates, .tunable = true};
}

const CudaKernelRegistration kForward(kernels("batch_norm_training", forward_candidates));
const CudaKernelRegistration kFusedForward(kernels("fused:batch_norm", forward_candidates));
const CudaKernelRegistration kBackward(kernels("batch_norm_gradient", backward_candidates));
const CudaKernelRegistration kFusedBackward(kernels("fused:batch_norm_gradient", backward_candidates));

}  // namespace
}  // namespace tessera::cuda
