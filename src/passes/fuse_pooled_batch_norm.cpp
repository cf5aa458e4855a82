// y = max_pool(relu(batch_norm(x))) in one kernel that reads x and writes the pooled values and their
// positions, and the gradient of the three in one that reads x, the pooled gradient and the positions. The
// tensor between the normalization and the pooling, and its gradient, are the largest of many networks, and
// never in memory.
//
// Forward needs the statistics first. They stay behind as a normalization whose result nobody reads, which
// fuse_batch_norm reduces to them or has the convolution in front make them.
#include "tessera/passes/fuse.h"

#include "passes/batch_norm_mask.h"
#include "passes/passes.h"

namespace tessera::passes {
namespace {

bool fuse_forward(Graph& graph) {
  bool changed = false;
  for (Node* pool : nodes_of(graph, "max_pool")) {
    Node* relu = producer_of(pool->input(0), "relu");
    if (relu == nullptr || sole_reader(relu->output()) != pool) continue;
    const Node* norm = producer_of(relu->input(0), "batch_norm_training");
    if (norm == nullptr || sole_reader(norm->output()) != relu) continue;
    Node* recomputed = nullptr;
    {
      const InsertionPoint here(graph, relu);
      recomputed = recompute_normalization(*norm)->producer();
    }
    graph.set_input(relu, 0, recomputed->output());
    fuse_nodes(graph, "batch_norm_max_pool", {recomputed, relu, pool}, {pool->output(0), pool->output(1)});
    changed = true;
  }
  return changed;
}

bool fuse_backward(Graph& graph) {
  bool changed = false;
  for (Node* gradient : nodes_of(graph, "batch_norm_gradient")) {
    if (!is_read(*gradient)) continue;
    const std::optional<ReluMask> mask = find_relu_mask(gradient->input(0));
    if (!mask.has_value() || sole_reader(mask->select->output()) != gradient) continue;
    Node* pool = producer_of(mask->select->input(1), "max_pool_gradient");
    if (pool == nullptr || sole_reader(pool->output()) != mask->select) continue;
    const Node* norm = masked_normalization(*gradient, *mask);
    if (norm == nullptr) continue;
    const std::vector<Node*> members{pool, mask_by_input(*mask, *norm), mask->greater, mask->select,
                                     gradient};
    fuse_nodes(graph, "max_pool_batch_norm_gradient", members, visible_values(members));
    changed = true;
  }
  return changed;
}

}  // namespace

bool fuse_pooled_batch_norm(Graph& graph, const PassOptions& options) {
  if (!options.fuse_pooled_batch_norm) return false;
  // The gradients first: once their masks are found from x, the pooling alone reads the relu's result.
  const bool backward = fuse_backward(graph);
  return fuse_forward(graph) || backward;
}

}  // namespace tessera::passes
