// The gradients of a convolution to its data, which is the transposed convolution too, and to its weight.
#include <algorithm>
#include <utility>

#include "device/cpu/convolution/convolution_problem.h"
#include "device/cpu/convolution/direct_weight_gradient.h"
#include "device/cpu/convolution/panel_convolution.h"
#include "device/cpu/kernel_registry.h"
#include "device/cpu/winograd/winograd.h"

namespace tessera::cpu {
namespace {

using dnnl::memory;

constexpr auto kDirect = dnnl::algorithm::convolution_direct;

// oneDNN wants the forward descriptor as a hint; weights and activations are laid out as the gradient's.
dnnl::convolution_forward::primitive_desc forward_hint(const ConvolutionProblem& problem,
                                                       const memory::desc& source, const memory::desc& weight,
                                                       const memory::desc& destination) {
  return {onednn_engine(),
          dnnl::prop_kind::forward_training,
          kDirect,
          source,
          weight,
          destination,
          problem.strides,
          problem.dilations,
          problem.padding_low,
          problem.padding_high,
          default_attributes()};
}

struct GradientRequest {
  ConvolutionProblem problem;
  memory::data_type stored;
  memory::data_type type;
  memory::desc source, weight, destination;  // as asked of oneDNN
};

GradientRequest make_request(const Shape& source, const Shape& weight, const Shape& destination,
                             const Node& node, bool blocked) {
  GradientRequest request;
  request.problem = make_convolution_problem(source, weight, destination, node.attributes());
  request.stored = onednn_type(node.input(0)->data_type());
  request.type = compute_type(node.input(0)->data_type());
  const auto activations = [&](const memory::dims& dims) {
    return blocked ? any_layout(dims, request.type) : channels_last(dims, request.type);
  };
  request.source = activations(request.problem.source);
  request.weight = any_layout(request.problem.weight, request.type);
  request.destination = activations(request.problem.destination);
  return request;
}

Shape shape_of(const Value* value) {
  return value->type().static_shape();
}

GradientRequest data_request(const Node& node, bool blocked) {
  return make_request(shape_of(node.output()), shape_of(node.input(1)), shape_of(node.input(0)), node,
                      blocked);
}

GradientRequest weight_request(const Node& node, bool blocked) {
  GradientRequest request =
      make_request(shape_of(node.input(0)), shape_of(node.output()), shape_of(node.input(1)), node, blocked);
  if (request.type != memory::data_type::bf16) return request;
  for (size_t axis = 0; axis < request.problem.strides.size(); ++axis) {
    refuse_unless(request.problem.strides[axis] <= request.problem.source[2 + axis],
                  "oneDNN 3.2 sums what it never wrote for strides beyond the image in bf16");
  }
  return request;
}

OnednnPlan plan_data(const KernelRequest& kernel, bool blocked) {
  const GradientRequest request = data_request(kernel.node, blocked);
  const ConvolutionProblem& problem = request.problem;
  refuse_beside_image(problem, request.type);
  const dnnl::convolution_backward_data::primitive_desc descriptor(
      onednn_engine(), kDirect, request.source, request.weight, request.destination, problem.strides,
      problem.dilations, problem.padding_low, problem.padding_high,
      forward_hint(problem, request.source, request.weight, request.destination), default_attributes());
  return {
      descriptor,
      {{DNNL_ARG_DIFF_DST, false, 0, problem.destination_stored(request.stored), descriptor.diff_dst_desc()},
       {DNNL_ARG_WEIGHTS, false, 1, problem.weight_stored(request.stored), descriptor.weights_desc()},
       {DNNL_ARG_DIFF_SRC, true, 0, problem.source_stored(request.stored), descriptor.diff_src_desc()}}};
}

// oneDNN 3.2 has two faults in weight gradients on channels-last activations; on blocked ones it is right.
// tests/device_cpu/onednn_faults_test.cpp tells when the installed version has them no more.
void refuse_faulty(const ConvolutionProblem& problem, memory::data_type type) {
  const auto any_above = [](const memory::dims& values, int64_t least) {
    return std::any_of(values.begin(), values.end(), [least](int64_t value) { return value > least; });
  };
  constexpr int64_t kVector = 16;
  const int64_t channels = problem.input_channels() / problem.groups;
  const bool strided = !problem.has_window() && any_above(problem.strides, 1);
  refuse_unless(
      !strided || channels >= kVector,
      "oneDNN 3.2 writes beyond its scratchpad for strides over windows of one element and fewer than "
      "{} channels",
      kVector);
  const bool dilated = problem.has_window() && any_above(problem.dilations, 0);
  refuse_unless(
      type != memory::data_type::bf16 || !dilated || channels % kVector == 0,
      "oneDNN 3.2 sums what it never wrote for dilated windows in bf16 and a number of channels that {} "
      "does not divide",
      kVector);
}

OnednnPlan plan_weight(const KernelRequest& kernel, bool blocked) {
  const GradientRequest request = weight_request(kernel.node, blocked);
  const ConvolutionProblem& problem = request.problem;
  if (!blocked) refuse_faulty(problem, request.type);
  const dnnl::convolution_backward_weights::primitive_desc descriptor(
      onednn_engine(), kDirect, request.source, request.weight, request.destination, problem.strides,
      problem.dilations, problem.padding_low, problem.padding_high,
      forward_hint(problem, request.source, request.weight, request.destination), default_attributes());
  const memory::data_type result = onednn_type(kernel.node.output()->data_type());
  return {
      descriptor,
      {{DNNL_ARG_SRC, false, 0, problem.source_stored(request.stored), descriptor.src_desc()},
       {DNNL_ARG_DIFF_DST, false, 1, problem.destination_stored(request.stored), descriptor.diff_dst_desc()},
       {DNNL_ARG_DIFF_WEIGHTS, true, 0, problem.weight_stored(result), descriptor.diff_weights_desc()}}};
}

void refuse_unless_pointwise(const ConvolutionProblem& problem) {
  refuse_unless(problem.is_pointwise(),
                "the window is not one element, or there are strides, padding or groups");
}

// dx[pixels, C] = dy[pixels, K] w[K, C]
OnednnPlan plan_data_pointwise(const KernelRequest& kernel) {
  const auto [problem, stored, type, source, weight, destination] = data_request(kernel.node, false);
  refuse_unless_pointwise(problem);
  const int64_t pixels = problem.pixels();
  const memory::dims dy{pixels, problem.output_channels()};
  const memory::dims w{problem.output_channels(), problem.input_channels()};
  const memory::dims dx{pixels, problem.input_channels()};
  const dnnl::matmul::primitive_desc descriptor(onednn_engine(), dense(dy, type), dense(w, type),
                                                dense(dx, type), default_attributes());
  return {descriptor,
          {{DNNL_ARG_SRC, false, 0, dense(dy, stored), descriptor.src_desc()},
           {DNNL_ARG_WEIGHTS, false, 1, dense(w, stored), descriptor.weights_desc()},
           {DNNL_ARG_DST, true, 0, dense(dx, stored), descriptor.dst_desc()}}};
}

// dw[K, C] = dy[pixels, K]^T x[pixels, C]
OnednnPlan plan_weight_pointwise(const KernelRequest& kernel) {
  const auto [problem, stored, type, source, weight, destination] = weight_request(kernel.node, false);
  refuse_unless_pointwise(problem);
  const int64_t pixels = problem.pixels();
  const memory::dims dy{problem.output_channels(), pixels};
  const memory::dims transposed{1, problem.output_channels()};
  const memory::dims x{pixels, problem.input_channels()};
  const memory::dims dw{problem.output_channels(), problem.input_channels()};
  const dnnl::matmul::primitive_desc descriptor(onednn_engine(), strided(dy, type, transposed),
                                                dense(x, type), dense(dw, type), default_attributes());
  const memory::data_type result = onednn_type(kernel.node.output()->data_type());
  return {descriptor,
          {{DNNL_ARG_SRC, false, 1, strided(dy, stored, transposed), descriptor.src_desc()},
           {DNNL_ARG_WEIGHTS, false, 0, dense(x, stored), descriptor.weights_desc()},
           {DNNL_ARG_DST, true, 0, dense(dw, result), descriptor.dst_desc()}}};
}

using Planner = OnednnPlan (*)(const KernelRequest&, bool);

OnednnPlanner with_layout(Planner planner, bool blocked) {
  return [planner, blocked](const KernelRequest& request) { return planner(request, blocked); };
}

std::vector<KernelCandidate> data_candidates(const Node&) {
  return {winograd_data_gradient_candidate(), pointwise_data_gradient_candidate(),
          onednn_candidate("onednn.convolution_data_gradient", with_layout(plan_data, false)),
          onednn_candidate("onednn.matmul_1x1", plan_data_pointwise),
          onednn_candidate("onednn.convolution_data_gradient_blocked", with_layout(plan_data, true))};
}

// For windows of one element the direct loops run at 95 to 110 % of oneDNN's rate but for the smallest
// weights, and for larger windows with strides at 105 to 120 %.
bool is_faster_direct(const Node& node) {
  const Shape weight = shape_of(node.output());
  const std::vector<int64_t> strides = node.attributes().integers("strides");
  if (element_count(weight) == weight[0] * weight.back()) return element_count(weight) > 64 * 64;
  return std::any_of(strides.begin(), strides.end(), [](int64_t stride) { return stride > 1; });
}

std::vector<KernelCandidate> weight_candidates(const Node& node) {
  KernelCandidate first =
      onednn_candidate("onednn.convolution_weight_gradient", with_layout(plan_weight, false));
  KernelCandidate second = direct_weight_gradient_candidate();
  if (is_faster_direct(node)) std::swap(first, second);
  return {winograd_weight_gradient_candidate(), first, second,
          onednn_candidate("onednn.matmul_1x1", plan_weight_pointwise),
          onednn_candidate("onednn.convolution_weight_gradient_blocked", with_layout(plan_weight, true))};
}

bool always(const Node&) {
  return true;
}

const CpuKernelRegistration kDataGradient({"convolution_data_gradient", data_candidates, always});
const CpuKernelRegistration kTransposed({"transposed_convolution", data_candidates, always});
const CpuKernelRegistration kWeightGradient({"convolution_weight_gradient", weight_candidates, always});

}  // namespace
}  // namespace tessera::cpu
