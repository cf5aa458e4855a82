#include "device/cuda/matmul/product_parts.h"

#include <utility>
#include <vector>

#include "tessera/device/common/contraction_pattern.h"
#include "tessera/device/common/refusal.h"
#include "tessera/graph/operator.h"
#include "tessera/passes/decompose.h"
#include "tessera/passes/fuse.h"

namespace tessera::cuda {
namespace {

bool is_product(const Node& node) {
  return node.operator_name() == "matmul" ||
         (node.body() != nullptr && node.attributes().text("kind") == "matmul");
}

const Node& product_of(const Graph& body) {
  for (const auto& inner : body.nodes()) {
    if (is_product(*inner)) return *inner;
  }
  backend::refuse("there is no product in it");
}

// A body of simple operators whose first inputs are the node's.
class Work {
 public:
  Work(const Node& node, const std::string& name) : graph_(std::make_unique<Graph>(name)) {
    for (const auto& input : node.body()->inputs())
      mapping_[input.get()] = graph_->add_input(InputRole::input, input->name(), input->type());
  }

  // What the member computes, but for a product, which is an input more.
  void add(const Node& member) {
    if (member.operator_name() == "matmul") {
      const Value* product = member.output();
      mapping_[product] = graph_->add_input(InputRole::input, "product", product->type());
    } else if (const Graph* body = member.body(); body != nullptr) {
      for (const auto& input : body->inputs()) {
        // A fused product's first factor may be what was left out.
        const auto own = mapping_.find(member.input(input->index()));
        if (own != mapping_.end()) mapping_[input.get()] = own->second;
      }
      for (const auto& inner : body->nodes()) add(*inner);
      for (size_t i = 0; i < body->outputs().size(); ++i)
        mapping_[member.output(i)] = mapping_.at(body->outputs()[i].value);
    } else {
      copy_node(member, *graph_, mapping_);
    }
  }

  void add_output(const std::string& name, const Value* value) {
    graph_->add_output(name, mapping_.at(value));
  }

  std::unique_ptr<Graph> take() {
    decompose_composites(*graph_);
    return std::move(graph_);
  }

 private:
  std::unique_ptr<Graph> graph_;
  ValueMapping mapping_;
};

std::unique_ptr<Graph> work_before(const Node& node, const Node& before) {
  Work work(node, "begin");
  for (const Value* input : before.inputs()) {
    if (input->producer() != nullptr) work.add(*input->producer());  // a number
  }
  work.add(before);
  work.add_output("a", before.output());
  return work.take();
}

std::unique_ptr<Graph> work_after(const Node& node, const Node* before) {
  Work work(node, "end");
  for (const auto& member : node.body()->nodes()) {
    const bool comes_before =
        before != nullptr && (member.get() == before || sole_reader(member->output()) == before);
    if (!comes_before) work.add(*member);
  }
  for (const Graph::Output& output : node.body()->outputs()) work.add_output(output.name, output.value);
  return work.take();
}

}  // namespace

const Value* first_factor(const Node& product) {
  const Value* factor = backend::read_chain(product).main->input(0);
  if (product.body() == nullptr) return factor;
  return factor->producer() == nullptr ? product.input(factor->index()) : nullptr;
}

std::optional<size_t> worked_on(const Node& before) {
  for (size_t i = 0; i < before.inputs().size(); ++i) {
    if (before.input(i)->type() == before.output()->type()) return i;
  }
  return std::nullopt;
}

ProductParts parts_of(const Node& node) {
  ProductParts parts;
  parts.product = &product_of(*node.body());
  const Value* factor = first_factor(*parts.product);
  backend::refuse_unless(factor != nullptr, "the product makes its first factor itself");
  parts.before = factor->producer();
  if (parts.before != nullptr) parts.begin = work_before(node, *parts.before);
  parts.end = work_after(node, parts.before);
  return parts;
}

std::unique_ptr<Graph> with_work_apart(const Node& node) {
  std::unique_ptr<Graph> graph = node.body()->clone();
  const Node* before = first_factor(product_of(*graph))->producer();
  std::vector<Node*> members;
  for (const auto& member : graph->nodes()) {
    if (member.get() != before && member->operator_name() != "constant") members.push_back(member.get());
  }
  fuse_nodes(*graph, kProductClusterKind, members, visible_values(members));
  return graph;
}

}  // namespace tessera::cuda
