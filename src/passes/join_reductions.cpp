// One value in the place of the many that ranks add up together: NCCL exchanges 97 MiB in one piece in a
// fifth of the time that it needs for the 161 gradients of ResNet-50 (docs/experiments/048-two-gpus.md). The
// joins and the parts are views, so that what makes a gradient writes it to its place at once.
//
// A value has a place in the whole where its bytes are a multiple of the device's alignment; one more may be
// the last. The others, and what a variable becomes, which is written to the variable itself, stay parts of
// the same exchange.
#include <algorithm>

#include "tessera/graph/operator.h"
#include "tessera/ops/functions.h"

#include "passes/passes.h"
#include "passes/reductions.h"

namespace tessera::passes {
namespace {

// Inputs by their numbers.
struct Parts {
  std::vector<size_t> joined;
  std::vector<size_t> apart;
};

Parts parts_of(const Node& node, int64_t alignment) {
  Parts parts;
  std::vector<size_t> unaligned;
  for (size_t i = 0; i < node.inputs().size(); ++i) {
    const int64_t bytes = node.input(i)->type().bytes();
    if (bytes == 0 || node.output(i)->is_output_or_update()) {
      parts.apart.push_back(i);
    } else {
      (bytes % alignment == 0 ? parts.joined : unaligned).push_back(i);
    }
  }
  const auto largest = std::max_element(unaligned.begin(), unaligned.end(), [&](size_t a, size_t b) {
    return node.input(a)->type().bytes() < node.input(b)->type().bytes();
  });
  if (largest != unaligned.end()) {
    parts.joined.push_back(*largest);
    unaligned.erase(largest);
  }
  parts.apart.insert(parts.apart.end(), unaligned.begin(), unaligned.end());
  return parts;
}

void join(Graph& graph, Node* node, const Parts& parts) {
  InsertionPoint here(graph, node);
  std::vector<Value*> flat;
  std::vector<int64_t> sizes;
  for (const size_t i : parts.joined) {
    sizes.push_back(node->input(i)->type().element_count());
    flat.push_back(ops::reshape(node->input(i), {sizes.back()}));
  }
  std::vector<Value*> inputs{ops::concat(flat, 0)};
  for (const size_t i : parts.apart) inputs.push_back(node->input(i));
  const Node* exchange = ops::apply("all_reduce", inputs, node->attributes());
  const std::vector<Value*> reduced = ops::split(exchange->output(0), sizes, 0);
  for (size_t part = 0; part < parts.joined.size(); ++part) {
    Value* old = node->output(parts.joined[part]);
    graph.replace_all_uses(old, ops::reshape(reduced[part], old->type().shape));
  }
  for (size_t part = 0; part < parts.apart.size(); ++part)
    graph.replace_all_uses(node->output(parts.apart[part]), exchange->outputs()[part + 1].get());
  graph.erase(node);
}

}  // namespace

bool join_reductions(Graph& graph, const PassContext& context) {
  const int64_t alignment = context.target.joined_reduction_alignment;
  if (alignment == 0) return false;
  bool changed = false;
  for (Node* node : sized_collectives(graph, "all_reduce")) {
    const Parts parts = parts_of(*node, alignment);
    if (parts.joined.size() < 2) continue;
    join(graph, node, parts);
    changed = true;
  }
  return changed;
}

}  // namespace tessera::passes
