// What follows a matrix product element by element, such as an activation's gradient and the sums of a
// bias's, reads it from memory, which takes as long as a third of the product. A device may have a kernel for
// both; whether that is faster is for its tuner to find out, so that the node holds them as they were.
#include <vector>

#include "tessera/graph/operator.h"
#include "tessera/passes/fuse.h"

#include "passes/clusters.h"
#include "passes/passes.h"

namespace tessera::passes {
namespace {

bool is_of_kind(const Node& node, std::string_view kind) {
  return node.operator_name() == "fused" && node.attributes().text("kind") == kind;
}

bool is_product(const Node& node) {
  return (node.operator_name() == "matmul" || is_of_kind(node, "matmul")) && node.outputs().size() == 1;
}

bool is_elementwise_work(const Node& node) {
  return is_of_kind(node, kClusterKind) || is_elementwise(node);
}

// The first reader that the device ends the product with.
Node* end_of(Node& product, const PassTarget& target) {
  for (Node* reader : readers_of(product.output())) {
    if (is_elementwise_work(*reader) && is_read(*reader) && target.ends_products(product, *reader) &&
        fuses_without_cycle({&product, reader}))
      return reader;
  }
  return nullptr;
}

}  // namespace

bool end_products(Graph& graph, const PassContext& context) {
  if (!context.target.ends_products) return false;
  std::vector<Node*> products;
  for (const auto& node : graph.nodes()) {
    if (is_product(*node) && is_read(*node)) products.push_back(node.get());
  }
  bool changed = false;
  // What reads two products is ended by the one that is made last.
  for (auto product = products.rbegin(); product != products.rend(); ++product) {
    Node* end = end_of(**product, context.target);
    if (end == nullptr) continue;
    fuse_nodes(graph, kEndedProductKind, {*product, end}, visible_values({*product, end}));
    changed = true;
  }
  return changed;
}

}  // namespace tessera::passes
