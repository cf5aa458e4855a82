// cuDNN's engines for normalizations of training. For the gradient of layer norm they come first; all others
// are for the tuner alone: to ask for them builds plans for seconds, and they are about as fast as our
// kernels, with which more fuses (docs/cuda/batch_norm.md).
#include "device/cuda/normalization/cudnn_norm.h"

#include <optional>
#include <span>

#include <fmt/format.h>

#include "tessera/base/rounding.h"
#include "tessera/device/common/batch_norm_patterns.h"
#include "tessera/device/common/refusal.h"
#include "tessera/device/common/workspace_layout.h"
#include "tessera/graph/operator.h"

#include "device/cuda/codegen/generated_kernel.h"
#include "device/cuda/cudnn/cudnn_norm_graph.h"
#include "device/cuda/cudnn/plan_cache.h"
#include "device/cuda/kernel_registry.h"

namespace tessera::cuda {
namespace {

using backend::refuse_unless;
using Operand = NormOperand;

// Which operand an input or output of the node is.
struct Place {
  Operand operand;
  size_t index;
};

struct NormCall {
  NormProblem problem;
  std::vector<Place> inputs;
  std::vector<Place> outputs;
  // Batch norm's: the graph has the variance where cuDNN has 1 / sqrt(variance + epsilon). It is an output
  // that is turned into the variance after cuDNN's launches, or the gradient's input, turned into the other
  // before.
  std::optional<size_t> variance;
};

bool is_gradient(const NormCall& call) {
  return call.problem.kind == NormKind::batch_norm_gradient ||
         call.problem.kind == NormKind::layer_norm_gradient;
}

NormProblem problem_of(NormKind kind, const Value& x, const KernelRequest& request) {
  return {.kind = kind,
          .type = x.data_type(),
          .x = x.type().static_shape(),
          .deterministic = request.deterministic};
}

NormCall batch_norm_call(const KernelRequest& request) {
  const backend::BatchNormBody body = backend::read_batch_norm(request.node);
  refuse_unless(body.mean.has_value() && body.variance.has_value(), "nothing reads the statistics");
  NormCall call{.problem = problem_of(NormKind::batch_norm, *request.node.input(body.x), request)};
  call.problem.epsilon = body.epsilon;
  call.problem.relu = body.relu;
  call.problem.residual = body.residual.has_value();
  call.inputs = {{Operand::x, body.x}, {Operand::scale, body.scale}, {Operand::bias, body.bias}};
  if (body.residual.has_value()) call.inputs.push_back({Operand::residual, *body.residual});
  call.outputs = {
      {Operand::result, 0}, {Operand::mean, *body.mean}, {Operand::inverse_deviation, *body.variance}};
  call.variance = body.variance;
  return call;
}

NormCall batch_norm_gradient_call(const KernelRequest& request) {
  const backend::BatchNormGradientBody body = backend::read_batch_norm_gradient(request.node);
  refuse_unless(body.dx.has_value() && body.dscale.has_value() && body.dbias.has_value(),
                "nothing reads one of the gradients");
  refuse_unless(!body.dz.has_value(), "the masked gradient is read elsewhere");
  refuse_unless(!body.bias.has_value(), "the mask is to be found from x");
  NormCall call{.problem = problem_of(NormKind::batch_norm_gradient, *request.node.input(body.x), request)};
  call.problem.epsilon = body.epsilon;
  call.problem.sum = body.dy2.has_value();
  call.problem.mask = body.y.has_value();
  call.inputs = {
      {Operand::dy, body.dy}, {Operand::x, body.x}, {Operand::scale, body.scale}, {Operand::mean, body.mean}};
  if (body.dy2.has_value()) call.inputs.push_back({Operand::dy2, *body.dy2});
  if (body.y.has_value()) call.inputs.push_back({Operand::relu, *body.y});
  call.outputs = {{Operand::dx, *body.dx}, {Operand::dscale, *body.dscale}, {Operand::dbias, *body.dbias}};
  call.variance = body.variance;
  return call;
}

// Of a node of the operator itself.
NormCall layer_norm_call(const KernelRequest& request) {
  const Node& node = request.node;
  const bool gradient = node.operator_name() == "layer_norm_gradient";
  refuse_unless(node.attributes().boolean("centered"), "a norm by the root mean square");
  refuse_unless(gradient || node.operand(2) != nullptr, "a norm without a bias");
  const Value& x = *node.input(gradient ? 1 : 0);
  backend::check_batch_norm_types(x, *node.input(gradient ? 2 : 1));
  NormCall call{.problem =
                    problem_of(gradient ? NormKind::layer_norm_gradient : NormKind::layer_norm, x, request)};
  const auto axes = static_cast<size_t>(node.attributes().integer("axes"));
  const Shape shape = x.type().static_shape();
  const Shape row(shape.end() - static_cast<std::ptrdiff_t>(axes), shape.end());
  call.problem.x = {element_count(shape) / element_count(row), element_count(row)};
  if (gradient) {
    call.inputs = {{Operand::dy, 0},
                   {Operand::x, 1},
                   {Operand::scale, 2},
                   {Operand::mean, 3},
                   {Operand::inverse_deviation, 4}};
    call.outputs = {{Operand::dx, 0}, {Operand::dscale, 1}, {Operand::dbias, 2}};
  } else {
    call.problem.epsilon = node.attributes().real("epsilon");
    call.inputs = {{Operand::x, 0}, {Operand::scale, 1}, {Operand::bias, 2}};
    call.outputs = {{Operand::result, 0}, {Operand::mean, 1}, {Operand::inverse_deviation, 2}};
  }
  return call;
}

NormCall make_call(const KernelRequest& request) {
  const std::string key = backend::kernel_key(request.node);
  if (key.starts_with("layer_norm")) return layer_norm_call(request);
  const bool gradient = key.ends_with("batch_norm_gradient");
  return gradient ? batch_norm_gradient_call(request) : batch_norm_call(request);
}

// One number per channel, x[n], becomes another.
std::unique_ptr<Kernel> converter(Context& context, int64_t channels, std::string_view formula) {
  constexpr int kThreads = 256;
  GeneratedProgram program;
  program.source =
      "#include \"primitives.cuh\"\nusing namespace tessera;\n" +
      entry_text(
          "run", kThreads, "const float* x, float* y",
          fmt::format("  const int n = static_cast<int>(blockIdx.x) * {} + static_cast<int>(threadIdx.x);\n"
                      "  if (n < {}) y[n] = {};\n",
                      kThreads, channels, formula));
  program.launches = {{.entry = "run",
                       .blocks = quotient_rounded_up(channels, kThreads),
                       .threads = kThreads,
                       .arguments = {{Argument::Kind::input, 0}, {Argument::Kind::output, 0}}}};
  return make_generated_kernel(context, std::move(program));
}

class CudnnNorm : public Kernel {
 public:
  CudnnNorm(NormCall call, Context& context, std::shared_ptr<CudnnPlan> plan)
      : call_(std::move(call)), plan_(std::move(plan)) {
    if (!call_.variance.has_value()) return;
    const int64_t channels = call_.problem.x.back();
    const std::string epsilon = float_literal(call_.problem.epsilon);
    converter_ = converter(context, channels,
                           is_gradient(call_) ? fmt::format("1 / sqrtf(x[n] + {})", epsilon)
                                              : fmt::format("op_relu(1 / (x[n] * x[n]) - {})", epsilon));
    if (is_gradient(call_))
      inverse_bytes_ = round_up(channels * int64_t{sizeof(float)}, backend::WorkspaceLayout::kAlignment);
  }

  int64_t workspace_bytes() const override {
    return inverse_bytes_ + (plan_ == nullptr ? 0 : plan_->workspace_bytes());
  }

  void run(const KernelArguments& arguments) override {
    PlanOperands operands;
    const auto give = [&](Operand operand, const void* memory) {
      operands.push_back({.number = static_cast<int64_t>(operand), .memory = memory});
    };
    for (const Place& place : call_.inputs) give(place.operand, arguments.inputs[place.index]);
    for (const Place& place : call_.outputs) give(place.operand, arguments.outputs[place.index]);
    if (call_.variance.has_value() && is_gradient(call_)) {
      convert(arguments.inputs[*call_.variance], arguments.workspace, arguments.queue);
      give(Operand::inverse_deviation, arguments.workspace);
    }
    plan_->run(operands, static_cast<std::byte*>(arguments.workspace) + inverse_bytes_, arguments.queue);
    if (call_.variance.has_value() && !is_gradient(call_)) {
      void* variance = arguments.outputs[*call_.variance];
      convert(variance, variance, arguments.queue);
    }
  }

 private:
  void convert(const void* from, void* to, Queue& queue) {
    converter_->run({std::span(&from, 1), std::span(&to, 1), nullptr, queue});
  }

  NormCall call_;
  std::shared_ptr<CudnnPlan> plan_;  // null where the GPU is not there
  std::unique_ptr<Kernel> converter_;
  int64_t inverse_bytes_ = 0;
};

// Whose rules run in passes of their own: cuDNN takes 41 us where they take 99.
bool comes_first(const Node& node) {
  return node.operator_name() == "layer_norm_gradient";
}

}  // namespace

KernelCandidate cudnn_norm_candidate(const Node& node, Context& context) {
  const auto plan = [&context](const KernelRequest& request) -> KernelMaker {
    const NormCall call = make_call(request);
    return [call, &context, plan = plan_of(context, call.problem.plan_problem(), 0)] {
      return std::make_unique<CudnnNorm>(call, context, plan);
    };
  };
  const std::string key = backend::kernel_key(node);
  const std::string norm = key.starts_with("layer_norm") ? "layer_norm" : "batch_norm";
  const std::string name = "cudnn." + norm + (key.ends_with("_gradient") ? "_gradient" : "");
  KernelCandidate candidate = backend::checked_candidate(name, plan);
  candidate.only_tuned = !comes_first(node);
  return candidate;
}

}  // namespace tessera::cuda
