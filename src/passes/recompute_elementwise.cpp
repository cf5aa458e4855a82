// The gradient of y = gelu(x) reads x, and the weight gradient of the product after it reads y: one of them
// can be made of the other. So it is of each elementwise value whose operands wait for the backward half in
// any case.
//
//   x -> y -> product -> ... -> loss ... -> dz -> data gradient -> dy * gelu'(x)
//    \----> y.recomputed --------------------> dz -> weight gradient
#include <algorithm>
#include <functional>
#include <unordered_set>

#include "tessera/graph/operator.h"

#include "passes/late_readers.h"

namespace tessera::passes {
namespace {

// Bytes: less saves nothing, or nothing that matters where nobody asked.
constexpr int64_t kSmallest = 4096;
constexpr int64_t kSmallestBeside = int64_t{1} << 20;

bool is_elementwise(const Node& node) {
  return node.schema().operator_class == OperatorClass::elementwise && node.outputs().size() == 1;
}

// Who reads y, or views of it.
std::vector<Node*> readers_of(const Value& y) {
  std::vector<Node*> found;
  std::vector<const Value*> values{&y};
  while (!values.empty()) {
    const Value* value = values.back();
    values.pop_back();
    for (const Use& use : value->uses()) {
      if (is_view(*use.node)) {
        values.push_back(use.node->output());
      } else {
        found.push_back(use.node);
      }
    }
  }
  return found;
}

bool is_shown_outside(const Value& y) {
  return y.is_output_or_update() || std::ranges::any_of(y.uses(), [](const Use& use) {
           return is_view(*use.node) && is_shown_outside(*use.node->output());
         });
}

struct Candidate {
  const Value* y;
  std::vector<Node*> readers;

  int64_t bytes() const { return y->type().bytes(); }
};

std::vector<Candidate> candidates_of(const Graph& graph, int64_t smallest) {
  std::vector<Candidate> found;
  for (const auto& node : graph.nodes()) {
    if (!is_elementwise(*node) || node->output()->type().bytes() < smallest ||
        is_shown_outside(*node->output()))
      continue;
    std::vector<Node*> readers = readers_of(*node->output());
    if (readers.size() > 1) found.push_back({node->output(), std::move(readers)});
  }
  return found;
}

// There at any time of the step.
bool stays(const Value& value) {
  return value.producer() == nullptr || value.producer()->operator_name() == "constant";
}

// Nodes to which x is kept: they need a reader of y and read x, a view of it, or what is made of it alone,
// not far away.
std::vector<const Node*> keepers(const Dependence& dependence, const Value& x, const Candidate& of) {
  const auto needs_y = [&](const Node* node) {
    return std::ranges::any_of(of.readers,
                               [&](const Node* reader) { return dependence.depends(*node, *reader); });
  };
  std::vector<const Node*> found;
  std::unordered_set<const Node*> seen{of.y->producer()};
  std::vector<const Value*> values{&x};
  // An optimizer's chains are long, and looked at from each of their values.
  constexpr size_t kMostSeen = 64;
  while (!values.empty() && seen.size() < kMostSeen) {
    const Value* value = values.back();
    values.pop_back();
    for (const Use& use : value->uses()) {
      if (!seen.insert(use.node).second) continue;
      if (needs_y(use.node)) {
        found.push_back(use.node);
      } else if (is_elementwise(*use.node) || is_view(*use.node)) {
        values.push_back(use.node->output());
      }
    }
  }
  return found;
}

// Those to which all operands of y are kept; `beside`: by an elementwise node of its shape.
std::vector<Node*> readers_of_copies(const Dependence& dependence, const Candidate& candidate, bool beside) {
  const auto is_beside = [&](const Node& keeper) {
    return is_elementwise(keeper) && keeper.output()->shape() == candidate.y->shape();
  };
  std::vector<Node*> result;
  for (const Value* x : candidate.y->producer()->inputs()) {
    if (stays(*x)) continue;
    std::vector<Node*> late;
    for (const Node* keeper : keepers(dependence, *x, candidate)) {
      if (beside && !is_beside(*keeper)) continue;
      late = late_readers(dependence, *keeper, candidate.readers);
      if (!late.empty()) break;
    }
    if (late.empty() || (!result.empty() && late != result)) return {};
    result = std::move(late);
  }
  return result;
}

}  // namespace

bool recompute_elementwise(Graph& graph, const ElementwiseCopies& copies) {
  if (copies.most_bytes <= 0) return false;
  std::vector<Candidate> candidates = candidates_of(graph, copies.beside ? kSmallestBeside : kSmallest);
  if (candidates.empty()) return false;
  std::ranges::stable_sort(candidates, std::greater(),
                           [](const Candidate& candidate) { return candidate.bytes(); });
  std::vector<const Node*> readers;
  for (const Candidate& candidate : candidates)
    readers.insert(readers.end(), candidate.readers.begin(), candidate.readers.end());
  const Dependence dependence(graph, readers);
  std::vector<Candidate> found;
  std::unordered_set<const Value*> recomputed;
  double room = copies.most_bytes;
  for (const Candidate& candidate : candidates) {
    // A copy that reads what is to die early would keep it.
    const std::vector<Value*>& operands = candidate.y->producer()->inputs();
    if (std::ranges::any_of(operands, [&](const Value* x) { return recomputed.contains(x); })) continue;
    std::vector<Node*> late = readers_of_copies(dependence, candidate, copies.beside);
    const auto bytes = static_cast<double>(std::ssize(late) * candidate.bytes());
    if (late.empty() || bytes > room) continue;
    room -= bytes;
    found.push_back({candidate.y, std::move(late)});
    recomputed.insert(candidate.y);
  }
  for (const auto& [y, late] : found) {
    const Node& node = *y->producer();
    for (Node* reader : late)
      recompute_for(graph, y, reader, [&] {
        return graph.add_node(node.operator_name(), node.operands(node.inputs()), node.attributes())
            ->output();
      });
  }
  return !found.empty();
}

}  // namespace tessera::passes
