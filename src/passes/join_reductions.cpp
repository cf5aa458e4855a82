// One value in the place of the many that ranks add up together: NCCL exchanges 97 MiB in one piece in a
// fifth of the time that it needs for the 161 gradients of ResNet-50 (docs/experiments/048-two-gpus.md). The
// joins and the parts are views, so that what makes a gradient writes it to its place at once.
//
// A value has a place in the whole of its type where its bytes are a multiple of the device's alignment.
// Small ones that have not are copied into one value, which may be the last of the whole: each further value
// costs NCCL some 10 us, as much as 2 MiB do (the same page). What is left over, and what a variable becomes,
// which is written to the variable itself, stay parts of the same exchange.
#include <algorithm>
#include <memory>
#include <set>

#include "tessera/graph/operator.h"
#include "tessera/ops/functions.h"

#include "passes/passes.h"
#include "passes/reductions.h"

namespace tessera::passes {
namespace {

constexpr int64_t kMostCopiedBytes = 64 << 10;

// Inputs of one type, by their numbers.
struct Parts {
  std::vector<size_t> joined;
  std::vector<size_t> copied;  // into one value, which is joined as the last
  std::vector<size_t> apart;

  size_t pieces() const { return joined.size() + (copied.empty() ? 0 : 1); }
};

Parts parts_of(const Node& node, DataType type, int64_t alignment) {
  Parts parts;
  std::vector<size_t> unaligned;
  for (size_t i = 0; i < node.inputs().size(); ++i) {
    if (node.input(i)->data_type() != type) continue;
    const int64_t bytes = node.input(i)->type().bytes();
    const bool is_small = bytes <= kMostCopiedBytes && bytes % alignment != 0;
    if (bytes == 0 || (node.output(i)->is_output_or_update() && !is_small)) {
      parts.apart.push_back(i);
    } else {
      (bytes % alignment == 0 ? parts.joined : is_small ? parts.copied : unaligned).push_back(i);
    }
  }
  if (parts.copied.size() == 1) {
    const size_t only = parts.copied.front();
    (node.output(only)->is_output_or_update() ? parts.apart : unaligned).push_back(only);
    parts.copied.clear();
  }
  // Without one that is copied, another one may be the last.
  const auto largest = std::max_element(unaligned.begin(), unaligned.end(), [&](size_t a, size_t b) {
    return node.input(a)->type().bytes() < node.input(b)->type().bytes();
  });
  if (largest != unaligned.end() && parts.copied.empty()) {
    parts.joined.push_back(*largest);
    unaligned.erase(largest);
  }
  parts.apart.insert(parts.apart.end(), unaligned.begin(), unaligned.end());
  return parts;
}

// Values one after the other in one, and what becomes of them taken from what becomes of it.
class Joined {
 public:
  void add(Value* value, Value* result) {
    values_.push_back(ops::reshape(value, {value->type().element_count()}));
    results_.push_back(result);
  }
  void end_with(std::unique_ptr<Joined> last) {
    values_.push_back(last->whole());
    last_ = std::move(last);
  }
  Value* whole() const { return values_.size() == 1 ? values_.front() : ops::concat(values_, 0); }
  // In place of the results.
  void take_from(Graph& graph, Value* whole) const {
    std::vector<int64_t> sizes;
    for (const Value* value : values_) sizes.push_back(value->type().element_count());
    const std::vector<Value*> parts = sizes.size() == 1 ? std::vector{whole} : ops::split(whole, sizes, 0);
    for (size_t i = 0; i < results_.size(); ++i)
      graph.replace_all_uses(results_[i], ops::reshape(parts[i], results_[i]->type().shape));
    if (last_ != nullptr) last_->take_from(graph, parts.back());
  }

 private:
  std::vector<Value*> values_;
  std::vector<Value*> results_;
  std::unique_ptr<Joined> last_;
};

std::unique_ptr<Joined> joined(const Node& node, const std::vector<size_t>& inputs) {
  auto result = std::make_unique<Joined>();
  for (const size_t i : inputs) result->add(node.input(i), node.output(i));
  return result;
}

void join(Graph& graph, Node* node, const std::vector<Parts>& types) {
  InsertionPoint here(graph, node);
  std::vector<std::unique_ptr<Joined>> pieces;
  std::vector<Value*> inputs;
  for (const Parts& parts : types) {
    std::unique_ptr<Joined> piece = joined(*node, parts.joined);
    if (!parts.copied.empty()) piece->end_with(joined(*node, parts.copied));
    if (parts.pieces() > 0) {
      inputs.push_back(piece->whole());
      pieces.push_back(std::move(piece));
    }
  }
  std::vector<Value*> results;
  for (const Parts& parts : types) {
    for (const size_t i : parts.apart) {
      inputs.push_back(node->input(i));
      results.push_back(node->output(i));
    }
  }
  const Node* exchange = ops::apply("all_reduce", inputs, node->attributes());
  for (size_t i = 0; i < pieces.size(); ++i) pieces[i]->take_from(graph, exchange->output(i));
  for (size_t i = 0; i < results.size(); ++i)
    graph.replace_all_uses(results[i], exchange->output(pieces.size() + i));
  graph.erase(node);
}

}  // namespace

bool join_reductions(Graph& graph, const PassContext& context) {
  const int64_t alignment = context.target.joined_reduction_alignment;
  if (alignment == 0) return false;
  bool changed = false;
  for (Node* node : sized_collectives(graph)) {
    if (node->operator_name() != "all_reduce") continue;
    std::set<DataType> types;
    for (const Value* input : node->inputs()) types.insert(input->data_type());
    std::vector<Parts> parts;
    bool joins = false;
    for (const DataType type : types) {
      parts.push_back(parts_of(*node, type, alignment));
      joins |= parts.back().joined.size() > 1 || !parts.back().copied.empty();
    }
    if (joins) join(graph, node, parts);
    changed |= joins;
  }
  return changed;
}

}  // namespace tessera::passes
