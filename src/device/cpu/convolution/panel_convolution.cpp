#include "device/cpu/convolution/panel_convolution.h"

#include "device/cpu/convolution/convolution_problem.h"
#include "device/cpu/kernel_registry.h"
#include "device/cpu/onednn/onednn.h"
#include "device/cpu/onednn/post_operations.h"
#include "device/cpu/panels/panel_kernel.h"

namespace tessera::cpu {
namespace {

constexpr int64_t kFewRows = 16;

Shape shape_of(const Value* value) {
  return value->type().static_shape();
}

void refuse_unless_pointwise(const ConvolutionProblem& problem) {
  refuse_unless(problem.is_pointwise(),
                "the window is not one element, or there are strides, padding or groups");
}

// With the convolution that it is of.
std::pair<PanelProblem, ConvolutionProblem> read_convolution(const KernelRequest& request) {
  const Node& node = request.node;
  const FusedChain chain = read_chain(node);
  const Node& main = *chain.main;
  PanelProblem product{.transposed = true, .epilogue = read_loop_epilogue(node, chain)};
  const ConvolutionProblem problem = problem_of(main);
  product.rows = problem.pixels();
  product.columns = problem.output_channels();
  product.data = input_index(node, main.input(0));
  product.weight = input_index(node, main.input(1));
  product.frozen = is_frozen_input(request, product.weight);
  // Where oneDNN takes it, it is as fast with a weight of its own layout, and with an epilogue; but of a few
  // rows its calls take longer than the products.
  const bool is_small = product.frozen && product.rows <= kFewRows;
  refuse_unless(needs_loops(chain) || is_small || (!product.frozen && product.epilogue.is_empty()),
                "the weight is frozen, or there is an epilogue that oneDNN takes");
  return {product, problem};
}

PanelProblem read_pointwise(const KernelRequest& request) {
  auto [product, problem] = read_convolution(request);
  refuse_unless_pointwise(problem);
  product.depth = problem.input_channels();
  refuse_bad_sizes(product);
  return product;
}

PanelProblem read_windows(const KernelRequest& request) {
  auto [product, problem] = read_convolution(request);
  refuse_unless(problem.groups == 1, "{} groups", problem.groups);
  refuse_unless(!problem.is_pointwise(), "pixels need not be gathered");
  refuse_unless(!product.epilogue.is_empty(), "nothing is fused to it");
  product.patches.emplace(problem);
  product.depth = product.patches->depth();
  refuse_bad_sizes(product);
  return product;
}

PanelProblem read_data_gradient(const KernelRequest& request) {
  const Node& node = request.node;
  const Value& dy = *node.input(0);
  refuse_unless(dy.data_type() == DataType::fp32, "only fp32, not {}", to_string(dy.data_type()));
  const ConvolutionProblem problem = make_convolution_problem(
      shape_of(node.output()), shape_of(node.input(1)), shape_of(node.input(0)), node.attributes());
  refuse_unless_pointwise(problem);
  refuse_unless(!is_frozen_input(request, 1), "the weight is frozen");
  const PanelProblem product{
      .rows = problem.pixels(), .depth = shape_of(&dy).back(), .columns = problem.input_channels()};
  refuse_bad_sizes(product);
  return product;
}

}  // namespace

KernelCandidate pointwise_convolution_candidate() {
  return backend::candidate_of<PanelKernel>("loops.pointwise", read_pointwise);
}

KernelCandidate pointwise_data_gradient_candidate() {
  return backend::candidate_of<PanelKernel>("loops.pointwise", read_data_gradient);
}

KernelCandidate window_convolution_candidate() {
  return backend::candidate_of<PanelKernel>("loops.windows", read_windows);
}

}  // namespace tessera::cpu
