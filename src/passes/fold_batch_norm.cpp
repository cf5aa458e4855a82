// Where nothing of it changes after binding (in a frozen graph, or among constants) the normalization after
// a convolution is one factor and one offset per output channel: the factor goes into the weight, the offset
// becomes a bias. Both are nodes on settled values, computed once.
#include "tessera/graph/operator.h"
#include "tessera/ops/functions.h"
#include "tessera/passes/fuse.h"
#include "tessera/passes/settled_values.h"

#include "passes/passes.h"

namespace tessera::passes {
namespace {

struct Match {
  Node* norm = nullptr;
  Node* convolution = nullptr;
  Value* bias = nullptr;  // of a convolution that has one already, its own or added after it
};

using Settled = std::unordered_set<const Value*>;

bool all_settled(const Node& node, size_t first, const Settled& settled) {
  for (size_t i = first; i < node.inputs().size(); ++i) {
    if (!settled.contains(node.input(i))) return false;
  }
  return true;
}

bool match(Node* norm, const Settled& settled, Match& result) {
  result.norm = norm;
  Value* x = norm->input(0);
  if (!all_settled(*norm, 1, settled) || sole_reader(x) != norm) return false;
  if (Node* add = producer_of(x, "add")) {
    for (size_t side = 0; side < 2; ++side) {
      Value* bias = add->input(1 - side);
      Value* sum = add->input(side);
      if (producer_of(sum, "convolution") == nullptr || sole_reader(sum) != add) continue;
      if (!is_per_channel(*bias, x->shape()) || !settled.contains(bias)) continue;
      result.bias = bias;
      x = sum;
      break;
    }
  }
  result.convolution = producer_of(x, "convolution");
  if (result.convolution == nullptr || !all_settled(*result.convolution, 1, settled)) return false;
  const bool has_own = result.convolution->inputs().size() > 2;
  if (has_own && result.bias != nullptr) return false;
  if (has_own) result.bias = result.convolution->input(2);
  return true;
}

void fold(Graph& graph, const Match& found) {
  const InsertionPoint here(graph, found.norm);
  graph.set_name_scope(found.norm->name() + ".folded");
  Value* scale = found.norm->input(1);
  const DataType type = scale->data_type();  // of the arithmetic; weights may be narrower
  Value* deviation = ops::sqrt(ops::add(found.norm->input(4), found.norm->attributes().real("epsilon")));
  Value* factor = ops::divide(scale, deviation);
  Value* mean = found.norm->input(3);
  if (found.bias != nullptr) {
    mean = ops::subtract(mean, ops::cast(ops::reshape(found.bias, scale->shape()), type));
  }
  Value* offset = ops::subtract(found.norm->input(2), ops::multiply(mean, factor));

  Value* weight = found.convolution->input(1);  // [K, spatial..., C/groups]
  SymbolicShape per_kernel(weight->shape().size(), 1);
  per_kernel[0] = weight->shape()[0];
  Value* scaled = ops::multiply(ops::cast(weight, type), ops::reshape(factor, per_kernel));
  Value* result =
      ops::apply("convolution", {found.convolution->input(0), ops::cast(scaled, weight->data_type())},
                 found.convolution->attributes())
          ->output();
  graph.set_name_scope("");
  Value* shifted = ops::add(result, ops::cast(offset, result->data_type()));
  graph.replace_all_uses(found.norm->output(), shifted);
}

}  // namespace

bool fold_batch_norm(Graph& graph, const PassContext& context) {
  const std::vector<Node*> norms = nodes_of(graph, "batch_norm_inference");
  if (norms.empty()) return false;
  const Settled settled = settled_values(graph, context.options.frozen);
  std::vector<Match> matches;
  for (Node* norm : norms) {
    Match found;
    if (match(norm, settled, found)) matches.push_back(found);
  }
  for (const Match& found : matches) {
    fold(graph, found);
    Node* before = found.norm->input(0)->producer();
    graph.erase(found.norm);
    if (before != found.convolution) graph.erase(before);
    graph.erase(found.convolution);
  }
  return !matches.empty();
}

}  // namespace tessera::passes
