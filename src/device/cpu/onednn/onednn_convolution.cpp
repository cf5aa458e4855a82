// Convolution forward, plain and with what follows it in a fused node: direct, direct on blocked activations,
// and for windows of one element the matrix product over pixels. And who computes it, in order.
#include "device/cpu/bytes/byte_convolution.h"
#include "device/cpu/convolution/convolution_problem.h"
#include "device/cpu/convolution/depthwise_convolution.h"
#include "device/cpu/convolution/panel_convolution.h"
#include "device/cpu/kernel_registry.h"
#include "device/cpu/onednn/post_operations.h"
#include "device/cpu/winograd/winograd.h"

namespace tessera::cpu {
namespace {

using dnnl::memory;

// As the graph stores it, and as the primitive computes with it.
struct OperandTypes {
  memory::data_type stored;
  memory::data_type used;
};
OperandTypes types_of(const Value* value) {
  return {onednn_type(value->data_type()), compute_type(value->data_type())};
}

struct ForwardRequest {
  FusedChain chain;
  ConvolutionProblem problem;
  OperandTypes source, weight, result;
};

ForwardRequest read_request(const Node& node) {
  ForwardRequest request;
  request.chain = read_chain(node);
  const Node& main = *request.chain.main;
  const Shape weight = main.input(1)->type().static_shape();
  request.problem = make_convolution_problem(main.input(0)->type().static_shape(), weight,
                                             main.output()->type().static_shape(), main.attributes());
  if (!is_floating(main.output()->data_type())) {
    refuse_unless(request.chain.bias == nullptr, "oneDNN adds a bias to whole numbers in fp32");
    refuse_inexact_sums(main.input(0)->data_type(), main.input(1)->data_type(),
                        element_count(weight) / weight[0]);
  }
  request.source = types_of(main.input(0));
  request.weight = types_of(main.input(1));
  request.result = types_of(main.output());
  return request;
}

OnednnOperand input_operand(int argument, const Node& node, const Value* value, memory::desc stored,
                            memory::desc wanted) {
  return {argument, false, input_index(node, value), std::move(stored), std::move(wanted)};
}

OnednnPlan plan_direct(const KernelRequest& request, bool blocked) {
  const Node& node = request.node;
  const ForwardRequest forward = read_request(node);
  const ConvolutionProblem& problem = forward.problem;
  refuse_unless(
      !blocked || !forward.chain.adds_whole_tensor(),
      "oneDNN 3.2 reads a residual beside blocked activations as if it were stored like the result");
  refuse_unless(!blocked || is_floating(node.output()->data_type()),
                "bytes lie channels last for oneDNN, too");
  refuse_beside_image(problem, forward.source.used);
  const auto activations = [&](const memory::dims& dims, memory::data_type type) {
    return blocked ? any_layout(dims, type) : channels_last(dims, type);
  };
  OnednnPlan plan;
  dnnl::primitive_attr attributes = default_attributes();
  const memory::desc result = problem.destination_stored(forward.result.used);
  append_post_operations(node, forward.chain, result, 1, attributes, plan.operands);
  memory::desc bias;
  if (forward.chain.bias != nullptr) bias = dense({problem.output_channels()}, forward.result.used);
  const dnnl::convolution_forward::primitive_desc descriptor(
      onednn_engine(), dnnl::prop_kind::forward_training, dnnl::algorithm::convolution_direct,
      activations(problem.source, forward.source.used), any_layout(problem.weight, forward.weight.used), bias,
      activations(problem.destination, forward.result.used), problem.strides, problem.dilations,
      problem.padding_low, problem.padding_high, attributes);
  const Node& main = *forward.chain.main;
  plan.descriptor = descriptor;
  plan.operands.push_back(input_operand(DNNL_ARG_SRC, node, main.input(0),
                                        problem.source_stored(forward.source.stored), descriptor.src_desc()));
  plan.operands.push_back(input_operand(DNNL_ARG_WEIGHTS, node, main.input(1),
                                        problem.weight_stored(forward.weight.stored),
                                        descriptor.weights_desc()));
  if (forward.chain.bias != nullptr) {
    plan.operands.push_back(input_operand(DNNL_ARG_BIAS, node, forward.chain.bias,
                                          dense({problem.output_channels()}, forward.result.stored),
                                          descriptor.bias_desc()));
  }
  plan.operands.push_back(
      {DNNL_ARG_DST, true, 0, problem.destination_stored(forward.result.stored), descriptor.dst_desc()});
  return plan;
}

// y[pixels, K] = x[pixels, C] w[K, C]^T
OnednnPlan plan_pointwise(const KernelRequest& request) {
  const Node& node = request.node;
  const ForwardRequest forward = read_request(node);
  const ConvolutionProblem& problem = forward.problem;
  refuse_unless(problem.is_pointwise(),
                "the window is not one element, or there are strides, padding or groups");
  const int64_t pixels = problem.pixels();
  const int64_t inputs = problem.input_channels();
  const int64_t outputs = problem.output_channels();
  OnednnPlan plan;
  dnnl::primitive_attr attributes = default_attributes();
  const memory::desc result = dense({pixels, outputs}, forward.result.used);
  append_post_operations(node, forward.chain, result, 1, attributes, plan.operands);
  memory::desc bias;
  if (forward.chain.bias != nullptr) bias = dense({1, outputs}, forward.result.used);
  const memory::dims weight_dims{inputs, outputs};
  const memory::dims transposed{1, inputs};
  const bool pack = is_frozen_input(request, input_index(node, forward.chain.main->input(1)));
  const dnnl::matmul::primitive_desc descriptor(onednn_engine(), dense({pixels, inputs}, forward.source.used),
                                                pack ? any_layout(weight_dims, forward.weight.used)
                                                     : strided(weight_dims, forward.weight.used, transposed),
                                                bias, result, attributes);
  const Node& main = *forward.chain.main;
  plan.descriptor = descriptor;
  plan.operands.push_back(input_operand(DNNL_ARG_SRC, node, main.input(0),
                                        dense({pixels, inputs}, forward.source.stored),
                                        descriptor.src_desc()));
  plan.operands.push_back(input_operand(DNNL_ARG_WEIGHTS, node, main.input(1),
                                        strided(weight_dims, forward.weight.stored, transposed),
                                        descriptor.weights_desc()));
  if (forward.chain.bias != nullptr) {
    plan.operands.push_back(input_operand(DNNL_ARG_BIAS, node, forward.chain.bias,
                                          dense({1, outputs}, forward.result.stored),
                                          descriptor.bias_desc()));
  }
  plan.operands.push_back(
      {DNNL_ARG_DST, true, 0, dense({pixels, outputs}, forward.result.stored), descriptor.dst_desc()});
  return plan;
}

std::vector<KernelCandidate> candidates(const Node&) {
  return {
      winograd_convolution_candidate(),
      pointwise_convolution_candidate(),
      depthwise_convolution_candidate(),
      window_convolution_candidate(),
      onednn_candidate("onednn.convolution",
                       [](const KernelRequest& request) { return plan_direct(request, /*blocked=*/false); }),
      onednn_candidate("onednn.matmul_1x1", plan_pointwise),
      onednn_candidate("onednn.convolution_blocked",
                       [](const KernelRequest& request) { return plan_direct(request, /*blocked=*/true); }),
      byte_convolution_candidate(),
  };
}

bool always(const Node&) {
  return true;
}

const CpuKernelRegistration kConvolution({"convolution", candidates, always});
const CpuKernelRegistration kFusedConvolution({"fused:convolution", candidates, always});

}  // namespace
}  // namespace tessera::cpu
