#include "passes/contraction_chain.h"

#include <string>
#include <vector>

#include "tessera/graph/operator.h"
#include "tessera/passes/fuse.h"

namespace tessera::passes {
namespace {

class Chain {
 public:
  explicit Chain(Node* main) : members_{main} {}

  const std::vector<Node*>& grow() {
    while (Node* next = sole_reader(result())) {
      if (next->output()->type() != result()->type() || !accepts(*next)) break;
      members_.push_back(next);
    }
    return members_;
  }

 private:
  const Value* result() const { return members_.back()->output(); }

  bool accepts(const Node& next) {
    if (next.schema().traits.activation) return true;
    const std::string& name = next.operator_name();
    if (name != "add" && name != "multiply") return false;
    const Value& other = *next.input(next.input(0) == result() ? 1 : 0);
    if (is_per_channel(other, result()->shape())) return true;
    if (name != "add" || has_residual_ || other.type() != result()->type()) return false;
    has_residual_ = true;
    return true;
  }

  std::vector<Node*> members_;
  bool has_residual_ = false;
};

}  // namespace

bool is_per_channel(const Value& value, const SymbolicShape& shape) {
  return !value.shape().empty() && value.shape().back() == shape.back() &&
         element_count(value.shape()) == shape.back();
}

bool fuse_contractions(Graph& graph, std::string_view main) {
  std::vector<Node*> found;
  for (const auto& node : graph.nodes()) {
    if (node->operator_name() == main && is_floating(node->output()->data_type()))
      found.push_back(node.get());
  }
  bool changed = false;
  for (Node* node : found) {
    const std::vector<Node*> members = Chain(node).grow();
    if (members.size() == 1) continue;
    fuse_nodes(graph, std::string(main), members, {members.back()->output()});
    changed = true;
  }
  return changed;
}

}  // namespace tessera::passes
