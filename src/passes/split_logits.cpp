// Logits of a large vocabulary are the largest value of a step, and they and their gradient lie beside all
// that is kept for the backward half. Each row of them is by itself: a loss, the gradient of the row, what
// that is multiplied by; and what is added up over rows, the gradients of the weight and of its bias, can be
// added up part by part. So the product that makes them is cut into parts of rows, and each part goes from
// the product to the gradients before the next one begins: the device says how many rows a part has. What
// that costs is another pass over the weight's gradient for each part.
#include <algorithm>
#include <map>
#include <string>
#include <vector>

#include "tessera/base/rounding.h"
#include "tessera/graph/operator.h"
#include "tessera/ops/functions.h"
#include "tessera/passes/fuse.h"

#include "passes/logits.h"
#include "passes/passes.h"

namespace tessera::passes {
namespace {

enum class Result {
  wide,  // [rows..., columns]: never whole from then on
  rows,  // something of each row, in its place
  sum,   // over all rows
};

class RowParts {
 public:
  // `rows`: of a part.
  RowParts(Node* product, int64_t rows)
      : product_(product), rows_(rows_of(*product->output())), rows_of_part_(rows) {}

  static int64_t rows_of(const Value& logits) { return logits.type().element_count() / last_extent(logits); }

  // False where something needs all rows together. Leaves the graph as it is.
  bool is_possible() {
    take(product_, Result::wide);
    // What is found while they are gone through comes last.
    for (size_t i = 0; i < order_.size(); ++i) {
      const Value* value = order_[i];
      if (value->is_output_or_update()) return false;
      for (Node* reader : readers_of(value)) {
        const bool reads_once = std::count(reader->inputs().begin(), reader->inputs().end(), value) == 1;
        if (!reads_once || results_.contains(reader) || !follow(reader, value)) return false;
      }
    }
    std::vector<Node*> members = in_order();
    const bool has_loss =
        std::any_of(members.begin(), members.end(), [](const Node* node) { return is_loss(*node); });
    // What a gradient begins with must not wait for the losses.
    return has_loss && fuses_without_cycle(members);
  }

  void apply(Graph& graph) {
    const std::vector<Node*> members = in_order();
    std::map<const Node*, std::vector<Value*>> made;  // rows: of each part; sum: so far
    {
      const InsertionPoint here(graph, product_);
      for (int64_t first = 0; first < rows_; first += rows_of_part_) {
        begin_part(first);
        for (Node* node : members) add(made[node], *node, make(graph, *node));
      }
      for (Node* node : members) {
        if (results_.at(node) != Result::wide) whole_[node] = whole(made[node], *node);
      }
    }
    for (size_t i = members.size(); i-- > 0;) {
      const std::string name = members[i]->name();
      Value* result = whole_[members[i]];
      if (result != nullptr) graph.replace_all_uses(members[i]->output(), result);
      graph.erase(members[i]);
      if (result != nullptr) graph.rename(result, name);
    }
    graph.sort();
  }

 private:
  void take(Node* node, Result result) {
    results_[node] = result;
    if (result == Result::wide) order_.push_back(node->output());
  }

  std::vector<Node*> in_order() const {
    std::vector<Node*> nodes;
    for (const auto& [node, result] : results_) nodes.push_back(node);
    std::sort(nodes.begin(), nodes.end(), [](const Node* a, const Node* b) { return a->stands_before(*b); });
    return nodes;
  }

  bool follow(Node* node, const Value* value) {
    const std::string& name = node->operator_name();
    const bool is_first = node->input(0) == value;
    if (name == "matmul") return follow_product(node, is_first);
    if (name == "cast" || (name == "reshape" && keeps_columns(*node->output(), *value)) ||
        (name == "add" && is_bias(*node->input(is_first ? 1 : 0), *value)) ||
        (name == "slice" && cuts_columns(*node)) || (name == "cross_entropy_gradient" && is_first)) {
      take(node, Result::wide);
    } else if ((name == "cross_entropy" && is_first) || (name == "argmax" && is_along_columns(*node))) {
      take(node, Result::rows);
    } else if (name == "reduce_sum" && sums_rows(*node)) {
      take(node, Result::sum);
    } else {
      return false;
    }
    return true;
  }

  // By a matrix for each row, or of all rows by those of another matrix.
  bool follow_product(Node* node, bool is_first) {
    const bool transposes_a = node->attributes().boolean("transpose_a");
    const bool transposes_b = node->attributes().boolean("transpose_b");
    if (is_first && !transposes_a) {
      take(node, Result::rows);
      return node->input(1)->type().rank() == 2;
    }
    take(node, Result::sum);
    return transposes_a && !transposes_b && node->input(0)->type().rank() == 2 &&
           node->input(1)->type().rank() == 2;
  }

  static bool cuts_columns(const Node& slice) {
    Shape kept = slice.input(0)->type().static_shape();
    kept.back() = last_extent(*slice.output());
    return slice.output()->type().static_shape() == kept &&
           slice.attributes().integers("starts").back() == 0 &&
           slice.attributes().integers("strides").back() == 1;
  }

  void begin_part(int64_t first) {
    first_ = first;
    part_.clear();
  }

  int64_t end() const { return std::min(first_ + rows_of_part_, rows_); }

  // The part's rows of a value that has all of them: [rows, columns], or [rows] of one number each.
  Value* part_of(Value* value, bool has_columns) {
    if (const auto found = part_.find(value); found != part_.end()) return found->second;
    std::vector<int64_t> starts{first_};
    std::vector<int64_t> limits{end()};
    SymbolicShape flat{rows_};
    if (has_columns) {
      starts.push_back(0);
      limits.push_back(last_extent(*value));
      flat.push_back(value->shape().back());
    }
    Value*& rows = flat_[value];
    if (rows == nullptr) rows = value->shape() == flat ? value : ops::reshape(value, flat);
    return part_[value] = ops::slice(rows, starts, limits);
  }

  // The node of the part, whose wide values have two axes.
  Value* make(Graph& graph, Node& node) {
    const std::string& name = node.operator_name();
    std::vector<Value*> operands = node.inputs();
    Attributes attributes = node.attributes();
    if (name == "matmul") {
      const bool of_rows = results_.at(&node) != Result::sum;
      operands[0] = part_of(operands[0], true);
      if (!of_rows) operands[1] = part_of(operands[1], true);
    } else if (name == "add") {
      for (Value*& operand : operands) {
        operand = part_.contains(operand) ? part_.at(operand)
                                          : ops::reshape(operand, {last_extent(*node.output())});
      }
    } else {
      for (size_t i = 0; i < operands.size(); ++i) operands[i] = part_of(operands[i], i == 0);
    }
    if (name == "reshape") return part_[node.output()] = operands[0];
    if (name == "slice") {
      return part_[node.output()] =
                 ops::slice(operands[0], {0, 0}, {end() - first_, last_extent(*node.output())});
    }
    if (name == "argmax") attributes.set("axis", int64_t{1});
    if (name == "reduce_sum") attributes.set("axes", std::vector<int64_t>{0});
    Value* result = graph.add_node(name, node.operands(operands), attributes)->output();
    if (results_.at(&node) == Result::wide) part_[node.output()] = result;
    return result;
  }

  void add(std::vector<Value*>& made, Node& node, Value* result) const {
    if (results_.at(&node) == Result::sum && !made.empty()) {
      made.front() = ops::add(made.front(), result);
    } else {
      made.push_back(result);
    }
  }

  Value* whole(const std::vector<Value*>& made, Node& node) const {
    Value* result = results_.at(&node) == Result::sum ? made.front() : ops::concat(made, 0);
    return result->type() == node.output()->type() ? result : ops::reshape(result, node.output()->shape());
  }

  Node* product_;
  int64_t rows_;
  int64_t rows_of_part_;
  std::map<Node*, Result> results_;
  std::vector<const Value*> order_;      // those that are wide, as they were found
  std::map<Node*, Value*> whole_;        // what takes the results' places
  std::map<const Value*, Value*> flat_;  // with their rows as one axis
  std::map<const Value*, Value*> part_;  // of the part that is made
  int64_t first_ = 0;                    // row of the part
};

bool multiplies_by_matrix(const Node& product) {
  return product.output()->type().is_static() && product.output()->type().rank() > 1 &&
         product.input(1)->type().rank() == 2 && product.input(0) != product.input(1) &&
         !product.attributes().boolean("transpose_a");
}

}  // namespace

bool split_logits(Graph& graph, const PassContext& context) {
  if (!context.target.logit_rows) return false;
  return rewrite_products(graph, [&](Node* product) {
    if (!multiplies_by_matrix(*product)) return false;
    const int64_t rows = context.target.logit_rows(*product);
    if (rows >= RowParts::rows_of(*product->output())) return false;
    RowParts parts(product, rows);
    if (!parts.is_possible()) return false;
    parts.apply(graph);
    return true;
  });
}

}  // namespace tessera::passes
