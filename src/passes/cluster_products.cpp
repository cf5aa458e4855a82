// What follows a matrix product element by element, such as an activation's gradient and the sums of a
// bias's, reads it from memory, and what makes its first factor so, such as a gate, writes that there; either
// may take as long as a third of the product. A device may have a kernel for all; whether that is faster is
// for its tuner to find out, so that the node holds them as they were.
#include <unordered_set>
#include <vector>

#include "tessera/graph/operator.h"
#include "tessera/passes/fuse.h"
#include "tessera/passes/settled_values.h"

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

// Null where the product makes it itself.
const Value* first_factor(const Node& product) {
  if (product.body() == nullptr) return product.input(0);
  for (const auto& inner : product.body()->nodes()) {
    if (inner->operator_name() != "matmul") continue;
    const Value* factor = inner->input(0);
    return factor->producer() == nullptr ? product.input(factor->index()) : nullptr;
  }
  return nullptr;
}

class ProductClusters {
 public:
  ProductClusters(const Graph& graph, const PassContext& context)
      : target_(context.target), settled_(settled_values(graph, context.options.frozen)) {}

  // The product and what the device takes with it.
  std::vector<Node*> members(Node& product) const {
    Node* after = after_of(nullptr, product);
    Node* before = before_of(product, after);
    if (before != nullptr && after == nullptr) after = after_of(before, product);
    return listed(before, product, after);
  }

 private:
  static std::vector<Node*> listed(Node* before, Node& product, Node* after) {
    std::vector<Node*> result;
    for (Node* node : {before, &product, after}) {
      if (node != nullptr) result.push_back(node);
    }
    return result;
  }

  bool takes(Node* before, Node& product, Node* after) const {
    return target_.clusters_products(before, product, after) &&
           fuses_without_cycle(listed(before, product, after));
  }

  // The first reader that the device ends the product with.
  Node* after_of(Node* before, Node& product) const {
    for (Node* reader : readers_of(product.output())) {
      if (is_elementwise_work(*reader) && is_read(*reader) && takes(before, product, reader)) return reader;
    }
    return nullptr;
  }

  // What makes the first factor, and nothing else: what others read is stored anyway.
  Node* before_of(Node& product, Node* after) const {
    const Value* factor = first_factor(product);
    if (factor == nullptr || sole_reader(factor) != &product || settled_.contains(factor)) return nullptr;
    Node* before = factor->producer();
    const bool is_work = before != nullptr && is_elementwise_work(*before) && before->outputs().size() == 1;
    return is_work && !ends_another(*before) && takes(before, product, after) ? before : nullptr;
  }

  // Work between two products stays with the one whose result it is of.
  bool ends_another(Node& work) const {
    for (const Value* input : work.inputs()) {
      Node* product = input->producer();
      if (product != nullptr && is_product(*product) && takes(nullptr, *product, &work)) return true;
    }
    return false;
  }

  const PassTarget& target_;
  const std::unordered_set<const Value*> settled_;
};

}  // namespace

bool cluster_products(Graph& graph, const PassContext& context) {
  if (!context.target.clusters_products) return false;
  std::vector<Node*> products;
  for (const auto& node : graph.nodes()) {
    if (is_product(*node) && is_read(*node)) products.push_back(node.get());
  }
  const ProductClusters clusters(graph, context);
  bool changed = false;
  // What reads two products is ended by the one that is made last.
  for (auto product = products.rbegin(); product != products.rend(); ++product) {
    const std::vector<Node*> members = clusters.members(**product);
    if (members.size() == 1) continue;
    fuse_nodes(graph, kProductClusterKind, members, visible_values(members));
    changed = true;
  }
  return changed;
}

}  // namespace tessera::passes
