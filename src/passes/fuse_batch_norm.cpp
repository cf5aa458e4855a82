// Training: batch normalization with the residual's sum and the relu behind it, and its gradient with the
// relu's mask and the sum of two gradients before it; and, recomputed in the backward half, the normalization
// by the batch's statistics with its relu. Each would otherwise be a pass over whole activations of its own.
#include "tessera/graph/operator.h"
#include "tessera/passes/batch_norm_expression.h"
#include "tessera/passes/fuse.h"
#include "tessera/passes/settled_values.h"

#include "passes/batch_norm_mask.h"
#include "passes/convolution_statistics.h"
#include "passes/passes.h"

namespace tessera::passes {
namespace {

bool adds_equal_types(const Node& add) {
  return add.input(0)->type() == add.output()->type() && add.input(1)->type() == add.output()->type();
}

bool fuse_forward(Graph& graph) {
  bool changed = false;
  for (Node* norm : nodes_of(graph, "batch_norm_training")) {
    std::vector<Node*> members{norm};
    if (Node* add = sole_reader(norm->output(), "add"); add != nullptr && adds_equal_types(*add))
      members.push_back(add);
    if (Node* relu = sole_reader(members.back()->output(), "relu")) members.push_back(relu);
    if (members.size() == 1 || !fuses_without_cycle(members)) continue;
    std::vector<Value*> outputs{members.back()->output()};
    for (size_t statistic = 1; statistic < 3; ++statistic) {
      if (graph.is_used(norm->output(statistic))) outputs.push_back(norm->output(statistic));
    }
    fuse_nodes(graph, "batch_norm", members, outputs);
    changed = true;
  }
  return changed;
}

// Normalization by statistics that the run computes; of given ones little work is left, which clusters take.
bool fuse_recomputed(Graph& graph) {
  const std::vector<Node*> norms = nodes_of(graph, "batch_norm_inference");
  if (norms.empty()) return false;
  bool changed = false;
  const std::unordered_set<const Value*> given = settled_values(graph, true);
  for (Node* norm : norms) {
    Node* relu = sole_reader(norm->output(), "relu");
    if (relu == nullptr || given.contains(norm->input(3)) || given.contains(norm->input(4))) continue;
    fuse_nodes(graph, "batch_norm_inference", {norm, relu}, {relu->output()});
    changed = true;
  }
  return changed;
}

// Of a normalization whose result nobody reads the statistics are left.
bool reduce_to_statistics(Graph& graph) {
  bool changed = false;
  for (Node* norm : nodes_of(graph, "batch_norm_training")) {
    if (graph.is_used(norm->output())) continue;
    const InsertionPoint here(graph, norm);
    graph.set_name_scope(norm->name());
    const BatchStatistics statistics = batch_statistics(norm->input(0), norm->input(1)->data_type());
    graph.set_name_scope("");
    graph.replace_all_uses(norm->output(1), statistics.mean);
    graph.replace_all_uses(norm->output(2), statistics.variance);
    graph.erase(norm);
    changed = true;
  }
  return changed;
}

bool fuse_backward(Graph& graph) {
  bool changed = false;
  for (Node* gradient : nodes_of(graph, "batch_norm_gradient")) {
    if (!is_read(*gradient)) continue;
    std::vector<Node*> members{gradient};
    Value* incoming = gradient->input(0);
    const std::optional<ReluMask> mask = find_relu_mask(incoming);
    if (mask.has_value()) {
      members.push_back(mask->select);
      members.push_back(mask->greater);
      incoming = mask->select->input(1);
    }
    Node* reader = mask.has_value() ? mask->select : gradient;
    if (Node* sum = producer_of(incoming, "add");
        sum != nullptr && adds_equal_types(*sum) && sole_reader(incoming) == reader)
      members.push_back(sum);
    if (members.size() == 1 || !fuses_without_cycle(members)) continue;
    if (mask.has_value()) {
      if (const Node* norm = masked_normalization(*gradient, *mask))
        members.push_back(mask_by_input(*mask, *norm));
    }
    fuse_nodes(graph, "batch_norm_gradient", members, visible_values(members));
    changed = true;
  }
  return changed;
}

}  // namespace

bool fuse_batch_norm(Graph& graph, const PassOptions& options) {
  // The gradients first: they look for the forward nodes that the other half hides.
  const bool backward = fuse_backward(graph);
  const bool recomputed = fuse_recomputed(graph);
  const bool rewritten = use_convolution_statistics(graph, options);
  const bool reduced = reduce_to_statistics(graph);
  return fuse_forward(graph) || reduced || rewritten || recomputed || backward;
}

}  // namespace tessera::passes
