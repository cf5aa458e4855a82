#include "device/cuda/cudnn/cudnn_convolution.h"

#include <algorithm>
#include <optional>

#include "tessera/device/common/contraction_pattern.h"
#include "tessera/device/common/convolution_patterns.h"
#include "tessera/device/common/kernel_table.h"
#include "tessera/device/common/refusal.h"
#include "tessera/device/common/roles.h"
#include "tessera/graph/operator.h"
#include "tessera/passes/fuse.h"

#include "device/cuda/convolution/epilogue_activation.h"
#include "device/cuda/cudnn/cudnn_convolution_graph.h"
#include "device/cuda/cudnn/plan_cache.h"

namespace tessera::cuda {
namespace {

using backend::refuse_unless;

// A problem and where its operands are among the node's inputs.
struct ConvolutionCall {
  ConvolutionProblem problem;
  size_t first = 0;
  size_t second = 1;
  std::optional<size_t> bias;
  std::optional<size_t> residual;
  std::optional<size_t> mask;
  // Among the node's outputs.
  size_t result = 0;
  std::optional<size_t> sums;
  std::optional<size_t> squares;
};

void set_window(ConvolutionProblem& problem, const Attributes& attributes) {
  problem.strides = attributes.integers("strides");
  problem.padding_low = attributes.integers("padding_low");
  problem.padding_high = attributes.integers("padding_high");
  problem.dilations = attributes.integers("dilations");
  problem.groups = attributes.integer("groups");
}

// The node of the convolution itself is `main`, which may stand in the body of a fused node.
void set_shapes(ConvolutionProblem& problem, const Node& main) {
  const std::string& name = main.operator_name();
  const bool data = name == "convolution_data_gradient" || name == "transposed_convolution";
  const bool weights = name == "convolution_weight_gradient";
  problem.kind = data      ? ConvolutionKind::data_gradient
                 : weights ? ConvolutionKind::weight_gradient
                           : ConvolutionKind::forward;
  const auto shape = [](const Value* value) { return value->type().static_shape(); };
  problem.x = shape(data ? main.output() : main.input(0));
  problem.weight = shape(weights ? main.output() : main.input(1));
  problem.y = shape(data ? main.input(0) : weights ? main.input(1) : main.output());
  problem.type = main.output()->data_type();
  refuse_unless(is_floating(problem.type), "whole numbers");
  for (const auto* extents : {&problem.x, &problem.weight, &problem.y}) {
    refuse_unless(element_count(*extents) > 0, "a tensor without elements");
  }
  for (const auto* padding : {&problem.padding_low, &problem.padding_high}) {
    for (int64_t value : *padding) refuse_unless(value >= 0, "negative padding");
  }
}

void set_activation(ConvolutionProblem& problem, const Node& activation) {
  const std::string& name = activation.operator_name();
  problem.activation = name == "silu"      ? ConvolutionActivation::silu
                       : name == "sigmoid" ? ConvolutionActivation::sigmoid
                                           : ConvolutionActivation::relu;
  if (name == "relu6") problem.relu_limit = 6;
  if (name != "clip") return;
  refuse_unless(activation.attributes().real("low") == 0, "a lower limit that is not 0");
  problem.relu_limit = activation.attributes().real("high");
}

void set_chain(ConvolutionCall& call, const Node& node, const backend::FusedChain& chain) {
  const backend::Epilogue epilogue = backend::read_epilogue(node, chain, kConvolutionActivations);
  call.bias = epilogue.bias;
  call.residual = epilogue.residual;
  call.problem.bias = epilogue.bias.has_value();
  call.problem.residual = epilogue.residual.has_value();
  if (epilogue.activation != nullptr) set_activation(call.problem, *epilogue.activation);
}

// What convolution_statistics_pattern makes: the result, its sum and that of its squares.
void set_statistics(ConvolutionCall& call, bool deterministic) {
  refuse_unless(!deterministic, "cuDNN adds statistics in no fixed order");
  call.sums = 1;
  call.squares = 2;
  call.problem.statistics = true;
}

// What cuDNN was seen to compute wrongly on H100 and H200, for some shapes in fp32 and in TF32.
// tests/device_cuda/library_faults_test.cpp tells when the installed version has these faults no more.
void refuse_what_is_wrong(const ConvolutionProblem& problem) {
  const bool even = problem.padding_low == problem.padding_high;
  refuse_unless(even || problem.kind == ConvolutionKind::forward,
                "cuDNN 9.14 computes other gradients where padding is uneven");
  const Shape& weight = problem.weight;
  const bool pointwise = std::all_of(weight.begin() + 1, weight.end() - 1, [](int64_t w) { return w == 1; });
  const bool relu = problem.activation == ConvolutionActivation::relu;
  refuse_unless(!relu || !pointwise || problem.type != DataType::fp32,
                "the ReLU of cuDNN 9.14 makes 0 of NaN after windows of one element in fp32");
}

// As above, of the plans beside the first: of four channels, on an H100 in TF32.
void refuse_other_plans(const ConvolutionProblem& problem) {
  constexpr int64_t kFewChannels = 32;
  const bool relu = problem.activation == ConvolutionActivation::relu;
  refuse_unless(!relu || problem.type != DataType::fp32 || problem.weight.back() >= kFewChannels,
                "the ReLU of some plans of cuDNN 9.14 makes 0 of NaN for few channels in fp32");
}

ConvolutionCall make_call(const KernelRequest& request) {
  const Node& node = request.node;
  const std::string key = backend::kernel_key(node);
  ConvolutionCall call;
  const auto set_main = [&](const Node& main) {
    set_window(call.problem, main.attributes());
    set_shapes(call.problem, main);
    call.first = backend::input_index(node, main.input(0));
    call.second = backend::input_index(node, main.input(1));
  };
  if (key == "fused:convolution_data_gradient") {
    const backend::MaskedSumBody body = backend::read_masked_sum(node);
    set_main(*body.data);
    call.residual = body.addend;
    if (body.mask != nullptr) call.mask = backend::input_index(node, body.mask);
    call.problem.residual = true;
    call.problem.mask = body.mask != nullptr;
  } else if (key == "fused:convolution_statistics") {
    set_main(backend::read_convolution_statistics(node));
    set_statistics(call, request.deterministic);
  } else if (key == "convolution" || key == "fused:convolution") {
    const backend::FusedChain chain = backend::read_chain(node);
    set_main(*chain.main);
    set_chain(call, node, chain);
  } else {
    set_main(node);
  }
  call.problem.tf32 = request.tf32;
  call.problem.deterministic = request.deterministic;
  refuse_what_is_wrong(call.problem);
  return call;
}

class CudnnConvolution : public Kernel {
 public:
  CudnnConvolution(ConvolutionCall call, std::shared_ptr<CudnnPlan> plan)
      : call_(std::move(call)), plan_(std::move(plan)) {}

  bool loads_at_first_run() const override { return plan_ != nullptr; }
  int64_t workspace_bytes() const override { return plan_ == nullptr ? 0 : plan_->workspace_bytes(); }

  void run(const KernelArguments& arguments) override {
    const auto input = [&](std::optional<size_t> index) {
      return index.has_value() ? arguments.inputs[*index] : nullptr;
    };
    const auto output = [&](std::optional<size_t> index) {
      return index.has_value() ? arguments.outputs[*index] : nullptr;
    };
    const ConvolutionOperands operands{.first = input(call_.first),
                                       .second = input(call_.second),
                                       .bias = input(call_.bias),
                                       .residual = input(call_.residual),
                                       .mask = input(call_.mask),
                                       .result = output(call_.result),
                                       .sums = output(call_.sums),
                                       .squares = output(call_.squares)};
    plan_->run(operands.numbered(), arguments.workspace, arguments.queue);
  }

 private:
  ConvolutionCall call_;
  std::shared_ptr<CudnnPlan> plan_;  // null where the GPU is not there
};

// The plan that cuDNN's heuristics put first is not always the fastest: the next ones are candidates too, for
// the tuner.
constexpr int64_t kPlans = 8;

KernelCandidate cudnn_candidate(Context& context, int64_t choice) {
  const auto plan = [&context, choice](const KernelRequest& request) -> KernelMaker {
    const ConvolutionCall call = make_call(request);
    if (choice > 0) refuse_other_plans(call.problem);
    // Every choice asks for the first plan: it knows how many there are.
    const auto first = plan_of(context, call.problem.plan_problem(), 0);
    refuse_unless(choice == 0 || first != nullptr, "plans are counted on the GPU only");
    if (first != nullptr) refuse_unless(choice < first->choices(), "cuDNN names {} plans", first->choices());
    // The others take long to build: only where they will be timed.
    return [&context, choice, call] {
      return std::make_unique<CudnnConvolution>(call, plan_of(context, call.problem.plan_problem(), choice));
    };
  };
  const std::string name = choice == 0 ? "cudnn.convolution" : fmt::format("cudnn.convolution#{}", choice);
  KernelCandidate candidate = backend::checked_candidate(name, plan);
  candidate.only_tuned = choice > 0;
  return candidate;
}

}  // namespace

std::vector<KernelCandidate> cudnn_convolution_candidates(Context& context) {
  std::vector<KernelCandidate> candidates;
  for (int64_t choice = 0; choice < kPlans; ++choice) candidates.push_back(cudnn_candidate(context, choice));
  return candidates;
}

}  // namespace tessera::cuda
