// The gradient of y = gelu(x) reads x, and the weight gradient of the product after it reads y: one of them
// can be made of the other. So it is of each elementwise value whose operands wait for the backward half in
// any case.
//
//   x -> y -> product -> ... -> loss ... -> dz -> data gradient -> dy * gelu'(x)
//    \----> y.recomputed --------------------> dz -> weight gradient
//
// Where only elementwise nodes read the copy, beside which it is made, it is never written: silu(x) of
// silu(x) * z, whose gradient to z is dy * silu(x).
#include <algorithm>
#include <functional>
#include <optional>
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

bool is_beside(const Node& node, const Value& y) {
  return is_elementwise(node) && node.output()->shape() == y.shape();
}

// What a copy of y takes: its late readers, and the elementwise values before y that nothing keeps, but whose
// operands are kept.
struct Copy {
  const Value* y = nullptr;
  std::vector<Node*> readers;
  std::unordered_set<const Value*> made_anew;
};

class CopyFinder {
 public:
  // `beside`: operands are kept by elementwise nodes of y's shape.
  CopyFinder(const Dependence& dependence, bool beside) : dependence_(dependence), beside_(beside) {}

  std::optional<Copy> find(const Candidate& candidate) const {
    Copy copy{.y = candidate.y, .readers = {}, .made_anew = {candidate.y}};
    if (!keeps_operands(candidate, *candidate.y, kMostBefore, copy) || copy.readers.empty())
      return std::nullopt;
    return copy;
  }
  // The copy of another that reads what this one is of would keep it; it makes that for itself where it is
  // not written.
  void add(const Copy& copy, bool is_written) {
    if (is_written) {
      written_again_.insert(copy.y);
    } else {
      made_beside_.insert(copy.made_anew.begin(), copy.made_anew.end());
    }
  }

 private:
  static constexpr int kMostBefore = 3;  // such as a cast of an activation

  bool keeps_operands(const Candidate& candidate, const Value& value, int before, Copy& copy) const {
    return std::ranges::all_of(value.producer()->inputs(), [&](const Value* x) {
      if (stays(*x)) return true;
      if (written_again_.contains(x)) return false;
      // A cast is best made by who reads it: what memory holds is what was cast.
      const bool is_cast = x->producer()->operator_name() == "cast";
      if (is_cast && makes_anew(candidate, *x, before, copy)) return true;
      const std::vector<Node*> late =
          made_beside_.contains(x) ? std::vector<Node*>() : late_readers_beside(candidate, *x);
      if (late.empty()) return !is_cast && makes_anew(candidate, *x, before, copy);
      if (copy.readers.empty()) copy.readers = late;
      return copy.readers == late;
    });
  }

  bool makes_anew(const Candidate& candidate, const Value& x, int before, Copy& copy) const {
    if (before == 0 || !is_beside(*x.producer(), *candidate.y)) return false;
    Copy deeper = copy;
    deeper.made_anew.insert(&x);
    if (!keeps_operands(candidate, x, before - 1, deeper)) return false;
    copy = std::move(deeper);
    return true;
  }

  // Of y, where something keeps x that long.
  std::vector<Node*> late_readers_beside(const Candidate& candidate, const Value& x) const {
    for (const Node* keeper : keepers(dependence_, x, candidate)) {
      if (beside_ && !is_beside(*keeper, *candidate.y)) continue;
      std::vector<Node*> late = late_readers(dependence_, *keeper, candidate.readers);
      if (!late.empty()) return late;
    }
    return {};
  }

  const Dependence& dependence_;
  bool beside_;
  std::unordered_set<const Value*> written_again_, made_beside_;
};

Value* made_again(Graph& graph, const Copy& copy, Value* value) {
  if (!copy.made_anew.contains(value)) return value;
  const Node& node = *value->producer();
  std::vector<Value*> inputs;
  for (Value* input : node.inputs()) inputs.push_back(made_again(graph, copy, input));
  return graph.add_node(node.operator_name(), node.operands(inputs), node.attributes())->output();
}

// Of copies for these readers.
double written_bytes(const ElementwiseCopies& copies, const Value& y, const std::vector<Node*>& readers) {
  const bool is_written = !copies.beside || std::ranges::any_of(readers, [&](const Node* reader) {
    return !is_beside(*reader, y);
  });
  return is_written ? static_cast<double>(std::ssize(readers) * y.type().bytes()) : 0;
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
  CopyFinder finder(dependence, copies.beside);
  std::vector<Copy> found;
  double room = copies.most_bytes;
  for (const Candidate& candidate : candidates) {
    std::optional<Copy> copy = finder.find(candidate);
    if (!copy.has_value()) continue;
    const double bytes = written_bytes(copies, *copy->y, copy->readers);
    if (bytes > room) continue;
    room -= bytes;
    finder.add(*copy, bytes > 0);
    found.push_back(*std::move(copy));
  }
  for (const Copy& copy : found) {
    Value* y = copy.y->producer()->output();
    for (Node* reader : copy.readers)
      recompute_for(graph, y, reader, [&] { return made_again(graph, copy, y); });
  }
  return !found.empty();
}

}  // namespace tessera::passes
