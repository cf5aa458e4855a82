#include "device/cpu/panels/panel_matmul.h"

#include "device/cpu/kernel_registry.h"
#include "device/cpu/onednn/onednn.h"
#include "device/cpu/onednn/post_operations.h"
#include "device/cpu/panels/panel_kernel.h"
#include "device/cpu/panels/panel_product.h"

namespace tessera::cpu {
namespace {

// oneDNN packs the weight for each call, which many rows make up for.
constexpr int64_t kMostRows = 512;

PanelProblem read_matmul(const KernelRequest& request) {
  const Node& node = request.node;
  const FusedChain chain = read_chain(node);
  const Node& main = *chain.main;
  const Shape x = main.input(0)->type().static_shape();
  const Shape weight = main.input(1)->type().static_shape();
  PanelProblem problem{.transposed = main.attributes().boolean("transpose_b"),
                       .epilogue = read_loop_epilogue(node, chain)};
  refuse_unless(packs_for_each_call(), "oneDNN multiplies packed weights itself");
  refuse_unless(!main.attributes().boolean("transpose_a"), "rows of the left operand do not lie together");
  refuse_unless(x.size() >= 2 && weight.size() >= 2 && element_count(x) > 0 &&
                    element_count(weight) == weight[weight.size() - 1] * weight[weight.size() - 2] &&
                    element_count(weight) > 0,
                "not one matrix of weights for all rows");
  problem.data = input_index(node, main.input(0));
  problem.weight = input_index(node, main.input(1));
  problem.frozen = is_frozen_input(request, problem.weight);
  refuse_unless(problem.frozen, "the weight is not frozen");
  problem.depth = x.back();
  problem.rows = element_count(x) / problem.depth;
  problem.columns = element_count(weight) / problem.depth;
  refuse_unless(problem.rows <= kMostRows, "{} rows", problem.rows);
  refuse_bad_sizes(problem);
  return problem;
}

}  // namespace

bool packs_for_each_call() {
  return vector_width() <= 8;
}

KernelCandidate panel_matmul_candidate() {
  return backend::candidate_of<PanelKernel>("loops.matmul", read_matmul);
}

}  // namespace tessera::cpu
