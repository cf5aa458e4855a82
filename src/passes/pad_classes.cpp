// Classes are as many as they happen to be, 50257 words, where a device's products are fast if the rows of
// their results have a length that it likes. A larger product would have to be cut for whoever reads it, and
// the gradient of what was cut padded again for the two products that read that: passes over the largest
// tensors of a step. Losses that are told how many columns count need neither: the logits, and their gradient
// with zeros in the columns that are no classes, keep the longer rows from the product that makes them to
// those that end them. What is padded is the weight, once for all of them, and what is cut are gradients of
// its size.
#include <algorithm>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "tessera/graph/operator.h"
#include "tessera/ops/functions.h"
#include "tessera/passes/fuse.h"

#include "passes/logits.h"
#include "passes/passes.h"

namespace tessera::passes {
namespace {

// Which axis of the second operand the columns of the result are.
int64_t column_axis(const Node& product) {
  return product.attributes().boolean("transpose_b") ? 0 : 1;
}

// Of a product by a weight, and of all that comes of its columns.
class Widening {
 public:
  // `columns`: how many the result gets.
  Widening(Node* product, int64_t columns)
      : product_(product), classes_(last_extent(*product->output())), columns_(columns) {}

  // False where something needs as many columns as there are classes. Leaves the graph as it is.
  bool is_possible() {
    take(product_, product_->output(), 1);
    // What is found while they are gone through comes last.
    for (size_t i = 0; i < order_.size(); ++i) {
      const Value* value = order_[i];
      if (value->is_output_or_update()) return false;
      for (Node* reader : readers_of(value)) {
        const bool reads_once = std::count(reader->inputs().begin(), reader->inputs().end(), value) == 1;
        // Nor may two operands have such columns.
        if (!reads_once || nodes_.contains(reader) || !follow(reader, value)) return false;
      }
    }
    return std::any_of(nodes_.begin(), nodes_.end(), [](const auto& entry) { return is_loss(*entry.first); });
  }

  void apply(Graph& graph) {
    std::vector<Node*> nodes;
    for (const auto& [node, padded] : nodes_) nodes.push_back(node);
    std::sort(nodes.begin(), nodes.end(), [](const Node* a, const Node* b) { return a->stands_before(*b); });
    std::vector<Value*> made;
    for (Node* node : nodes) {
      const InsertionPoint here(graph, node);
      made.push_back(make(graph, *node, nodes_.at(node)));
    }
    for (size_t i = nodes.size(); i-- > 0;) {
      const std::string name = nodes[i]->name();
      graph.erase(nodes[i]);
      graph.rename(made[i], name);
    }
  }

 private:
  // `result`: of the node, where its last axis is the classes; `padded`: the operand that is.
  void take(Node* node, Value* result, std::optional<size_t> padded = {}) {
    nodes_[node] = padded;
    if (result == nullptr) return;
    order_.push_back(result);
    wide_[result] = nullptr;
  }

  // Whether the node can read `value` with more columns.
  bool follow(Node* node, const Value* value) {
    const std::string& name = node->operator_name();
    Value* result = node->output();
    const size_t other = node->input(0) == value ? 1 : 0;
    if (name == "matmul") return follow_product(node, value, other);
    if (name == "cast" || (name == "reshape" && keeps_columns(*result, *value))) {
      take(node, result);
    } else if (name == "add" && is_bias(*node->input(other), *value)) {
      take(node, result, other);
    } else if (is_loss(*node) && other == 1 && node->attributes().integer("classes") == 0) {
      take(node, name == "cross_entropy" ? nullptr : result);
    } else if ((name == "argmax" && is_along_columns(*node)) || (name == "reduce_sum" && sums_rows(*node))) {
      take(node, nullptr);
    } else {
      return false;
    }
    return true;
  }

  bool follow_product(Node* node, const Value* value, size_t other) {
    const bool is_first = other == 1;
    const Value* operand = node->input(other);
    const bool is_contracted =
        node->attributes().boolean(is_first ? "transpose_a" : "transpose_b") != is_first;
    if (!is_contracted) {
      // Cut from a single matrix.
      take(node, nullptr);
      return value->type().rank() == 2 && operand->type().rank() == 2;
    }
    // By zeros, where what is padded already has them.
    take(node, nullptr, other);
    const bool transposed = node->attributes().boolean(is_first ? "transpose_b" : "transpose_a");
    return operand == product_->input(1) && (transposed == is_first ? 1 : 0) == column_axis(*product_);
  }

  // With zeros at the end of one axis, once for all readers.
  Value* padded(Value* x, int64_t axis) {
    Value*& result = padded_[x];
    if (result == nullptr) {
      const auto rank = static_cast<size_t>(x->type().rank());
      std::vector<int64_t> high(rank, 0);
      high[static_cast<size_t>(axis)] = columns_ - classes_;
      result = ops::pad(x, std::vector<int64_t>(rank, 0), high);
    }
    return result;
  }

  static Value* cut(Value* x, const Value& like) {
    const Shape shape = like.type().static_shape();
    return x->type() == like.type() ? x : ops::slice(x, std::vector<int64_t>(shape.size(), 0), shape);
  }

  // The node with more columns, whose place its result takes.
  Value* make(Graph& graph, const Node& node, std::optional<size_t> padded_operand) {
    const std::string& name = node.operator_name();
    std::vector<Value*> operands = node.inputs();
    for (size_t i = 0; i < operands.size(); ++i) operands[i] = operand_of(node, i, padded_operand);
    Value* result = nullptr;
    if (name == "reshape") {
      SymbolicShape shape = node.output()->shape();
      shape.back() = columns_;
      result = ops::reshape(operands[0], shape);
    } else {
      Attributes attributes = node.attributes();
      if (is_loss(node)) attributes.set("classes", classes_);
      result = graph.add_node(name, node.operands(operands), attributes)->output();
    }
    if (const auto found = wide_.find(node.output()); found != wide_.end()) {
      found->second = result;
    } else {
      graph.replace_all_uses(node.output(), cut(result, *node.output()));
    }
    return result;
  }

  Value* operand_of(const Node& node, size_t index, std::optional<size_t> padded_operand) {
    Value* operand = node.input(index);
    if (padded_operand == index)
      return padded(operand,
                    operand == product_->input(1) ? column_axis(*product_) : operand->type().rank() - 1);
    const auto found = wide_.find(operand);
    if (found == wide_.end()) return operand;
    // Zeros might be larger than all logits.
    return node.operator_name() == "argmax" ? cut(found->second, *operand) : found->second;
  }

  Node* product_;
  int64_t classes_;
  int64_t columns_;
  std::map<Node*, std::optional<size_t>> nodes_;
  std::vector<const Value*> order_;      // those whose last axis is the classes, as they were found
  std::map<const Value*, Value*> wide_;  // what takes their places
  std::map<const Value*, Value*> padded_;
};

bool multiplies_by_matrix(const Node& product) {
  return product.output()->type().is_static() && product.input(1)->type().rank() == 2 &&
         product.input(0) != product.input(1);
}

}  // namespace

bool pad_classes(Graph& graph, const PassContext& context) {
  if (!context.target.padded_columns) return false;
  return rewrite_products(graph, [&](Node* product) {
    if (!multiplies_by_matrix(*product)) return false;
    const int64_t columns = context.target.padded_columns(*product);
    if (columns == last_extent(*product->output())) return false;
    Widening widening(product, columns);
    if (!widening.is_possible()) return false;
    widening.apply(graph);
    return true;
  });
}

}  // namespace tessera::passes
