#include "tessera/device/common/attention_patterns.h"

#include <algorithm>

#include "tessera/base/permutation.h"
#include "tessera/device/common/moved_view.h"
#include "tessera/graph/operator.h"
#include "tessera/ops/functions.h"
#include "tessera/passes/fuse.h"

namespace tessera::backend {
namespace {

bool is_one_of(const Node& node, std::initializer_list<std::string_view> names) {
  return std::find(names.begin(), names.end(), node.operator_name()) != names.end();
}

// Which operand of the gradient is the forward half's result.
constexpr size_t kY = 4;

bool is_transpose(const Node* node) {
  return node->operator_name() == "transpose";
}

bool is_readable(const std::optional<MovedView>& view, const Value& value) {
  return view.has_value() && has_aligned_rows(*view, value.data_type(), kAttentionRowAlignment);
}

// What moves an operand from where it is read, the last first.
std::vector<Node*> moves_before(const Value& operand) {
  std::vector<Node*> moves;
  for (Node* node = operand.producer();
       node != nullptr && is_one_of(*node, {"transpose", "reshape", "split"});
       node = node->input(0)->producer())
    moves.push_back(node);
  const auto begins_well = [&] {
    return moves.back()->operator_name() != "reshape" &&
           is_readable(view_of_source(operand, *moves.back()->input(0)), operand);
  };
  while (!moves.empty() && !begins_well()) moves.pop_back();
  return moves;
}

// What moves results to where they are written, in order, and where each of them ends.
struct MovesAfter {
  std::vector<Node*> moves;
  std::vector<Value*> ends;
};

// The node that alone reads a value and, if it joins it with others, joins only what is among the ends.
Node* next_move(const Value* value, const std::vector<Value*>& ends) {
  Node* reader = sole_reader(value);
  if (reader == nullptr || !is_one_of(*reader, {"transpose", "reshape", "concat"})) return nullptr;
  const bool is_whole = std::all_of(reader->inputs().begin(), reader->inputs().end(), [&](Value* input) {
    return sole_reader(input) == reader && std::find(ends.begin(), ends.end(), input) != ends.end();
  });
  return is_whole ? reader : nullptr;
}

bool moves_to(const Value& result, const Value& end) {
  return is_readable(view_of_end(result, end), result);
}

MovesAfter moves_after(const std::vector<Value*>& results) {
  MovesAfter found{{}, results};
  const auto replace = [&](const Value* old, Value* end) {
    std::replace_if(
        found.ends.begin(), found.ends.end(), [&](const Value* present) { return present == old; }, end);
  };
  const auto advance = [&](Value* end) {
    Node* move = next_move(end, found.ends);
    if (move == nullptr) return false;
    found.moves.push_back(move);
    for (Value* input : move->inputs()) replace(input, move->output());
    return true;
  };
  while (std::any_of(found.ends.begin(), found.ends.end(), advance)) continue;
  // A reshape moves nothing where nothing comes after it.
  const auto is_last_reshape = [&](const Node* move) {
    return move->operator_name() == "reshape" &&
           std::find(found.ends.begin(), found.ends.end(), move->output()) != found.ends.end();
  };
  for (;;) {
    const auto last = std::find_if(found.moves.begin(), found.moves.end(), is_last_reshape);
    if (last == found.moves.end()) break;
    replace((*last)->output(), (*last)->input(0));
    found.moves.erase(last);
  }
  for (size_t i = 0; i < results.size(); ++i) {
    if (!moves_to(*results[i], *found.ends[i])) return {{}, results};
  }
  return found;
}

// A gradient's y and v are of the forward half, which may write y elsewhere than its own order has it: the
// moves from there on, in order, that all others read it through.
std::vector<Node*> moves_after_y(const Node& gradient) {
  const Value& y = *gradient.input(kY);
  const Node* forward = y.producer();
  if (forward == nullptr || !is_one_of(*forward, {"attention", "dropout_attention"}) ||
      y.is_output_or_update())
    return {};
  std::vector<Node*> others = readers_of(&y);
  std::erase_if(others, [](const Node* reader) {
    return is_attention_gradient(*reader) || reader->operator_name() == "attention_bias_gradient";
  });
  if (others.size() != 1 || !is_one_of(*others.front(), {"transpose", "reshape"})) return {};
  Node* first = others.front();
  MovesAfter found = moves_after({first->output()});
  found.moves.insert(found.moves.begin(), first);
  const Value& end = *found.ends.front();
  const std::optional<MovedView> rest = view_of_end(*first->output(), end);
  const bool is_ready = end.producer()->stands_before(gradient);
  if (!is_ready || !rest.has_value() || !is_readable(view_of_operand({first, 0}, *rest), y)) return {};
  return found.moves;
}

// That of the bias, of the same operands, where each score has a number of its own: kernels that make the
// scores' gradient write it on the way. Null where there is none.
Node* bias_gradient_beside(const Node& gradient, const TakesAttention& takes) {
  const Value* bias = bias_of_attention(gradient);
  if (bias == nullptr || !takes || !takes(gradient)) return nullptr;
  const SymbolicShape& q = gradient.input(1)->shape();
  if (!std::equal(q.begin(), q.begin() + 2, bias->shape().begin())) return nullptr;
  const std::vector<Node*> readers = readers_of(bias);
  const auto found = std::find_if(readers.begin(), readers.end(), [&](const Node* reader) {
    return reader->operator_name() == "attention_bias_gradient" && reader->inputs() == gradient.inputs() &&
           reader->attributes() == gradient.attributes() && gradient.stands_before(*reader);
  });
  return found == readers.end() ? nullptr : *found;
}

// What the node computes of operands that may lie anywhere, and of its results.
struct Surroundings {
  std::vector<Node*> before;  // the last first
  std::vector<Node*> after_y;
  MovesAfter after;
  Node* bias_gradient = nullptr;

  bool transposes() const {
    const auto has_any = [](const std::vector<Node*>& moves) {
      return std::any_of(moves.begin(), moves.end(), is_transpose);
    };
    return has_any(before) || has_any(after_y) || has_any(after.moves);
  }
};

// All but the sums, the counter and the lengths of keys.
std::vector<const Value*> placed_operands(const Node& attention) {
  const size_t count = is_attention_gradient(attention) ? kY + 1 : 3;
  std::vector<const Value*> result(attention.inputs().begin(),
                                   attention.inputs().begin() + static_cast<std::ptrdiff_t>(count));
  if (const Value* bias = bias_of_attention(attention)) result.push_back(bias);
  return result;
}

Surroundings surroundings_of(const Node& attention, const TakesAttention& takes_bias_gradient) {
  Surroundings found;
  for (const Value* operand : placed_operands(attention)) {
    for (Node* move : moves_before(*operand)) {
      if (std::find(found.before.begin(), found.before.end(), move) == found.before.end())
        found.before.push_back(move);
    }
  }
  std::sort(found.before.begin(), found.before.end(),
            [](const Node* a, const Node* b) { return b->stands_before(*a); });
  if (is_attention_gradient(attention)) {
    found.after_y = moves_after_y(attention);
    found.bias_gradient = bias_gradient_beside(attention, takes_bias_gradient);
  }
  std::vector<Value*> results;
  for (size_t i = 0; i < (is_attention_gradient(attention) ? 3 : 1); ++i)
    results.push_back(attention.output(i));
  found.after = moves_after(results);
  return found;
}

void add_roles(FusionMatch& match, const Node& attention, const Surroundings& found) {
  match.add_roles_of(attention);
  if (found.bias_gradient != nullptr) match.add_role("bias_gradient", found.bias_gradient->output());
}

std::optional<FusionMatch> match(Node& attention, const TakesAttention& takes_bias_gradient) {
  if (!is_read(attention)) return std::nullopt;
  const Surroundings found = surroundings_of(attention, takes_bias_gradient);
  if (!found.transposes() && found.bias_gradient == nullptr) return std::nullopt;
  FusionMatch result{.members = found.after.moves, .outputs = {}, .roles = {}};
  result.members.push_back(&attention);
  add_roles(result, attention, found);
  for (Value* end : found.after.ends) {
    if (std::find(result.outputs.begin(), result.outputs.end(), end) == result.outputs.end())
      result.outputs.push_back(end);
  }
  if (!is_attention_gradient(attention)) result.outputs.push_back(attention.output(1));
  // cuDNN writes this in row-major order only.
  if (found.bias_gradient != nullptr) {
    result.members.push_back(found.bias_gradient);
    result.outputs.push_back(found.bias_gradient->output());
  }
  return result;
}

bool is_read_only_by(const Node& node, const NodeSet& readers) {
  return std::all_of(node.outputs().begin(), node.outputs().end(), [&](const auto& output) {
    return !output->is_output_or_update() &&
           std::all_of(output->uses().begin(), output->uses().end(),
                       [&](const Use& use) { return readers.contains(use.node); });
  });
}

// What others read as well stays, and the readers, which are the node and what is beside it, have copies.
void take_in_before(const std::vector<Node*>& readers, const std::vector<Node*>& moves, FusionMatch& match) {
  Graph& graph = readers.front()->graph();
  NodeSet own(readers.begin(), readers.end());
  for (const Node* move : moves) {
    if (is_read_only_by(*move, own)) own.insert(move);
  }
  ValueMapping copies;
  const auto read_copies = [&](Node& node) {
    for (size_t i = 0; i < node.inputs().size(); ++i) {
      const auto copy = copies.find(node.input(i));
      if (copy != copies.end() && copy->second != node.input(i)) graph.set_input(&node, i, copy->second);
    }
  };
  for (auto move = moves.rbegin(); move != moves.rend(); ++move) {
    if (own.contains(*move)) {
      read_copies(**move);
      match.members.push_back(*move);
      continue;
    }
    const InsertionPoint here(graph, *move);
    copies.try_emplace((*move)->input(0), (*move)->input(0));
    match.members.push_back(copy_node(**move, graph, copies));
  }
  for (Node* reader : readers) read_copies(*reader);
}

// y again, from where it is moved to, for readers of which the gradient is the first.
void take_in_after_y(const std::vector<Node*>& readers, const std::vector<Node*>& moves, FusionMatch& match) {
  if (moves.empty()) return;
  Graph& graph = readers.front()->graph();
  const InsertionPoint here(graph, readers.front());
  Value* y = moves.back()->output();
  for (auto move = moves.rbegin(); move != moves.rend(); ++move) {
    y = is_transpose(*move)
            ? ops::transpose(y, inverse_permutation((*move)->attributes().integers("permutation")))
            : ops::reshape(y, (*move)->input(0)->shape());
    match.members.push_back(y->producer());
  }
  for (Node* reader : readers) graph.set_input(reader, kY, y);
}

void complete(FusionMatch& match, const TakesAttention& takes_bias_gradient) {
  Node& attention = *match.anchor;
  const Surroundings found = surroundings_of(attention, takes_bias_gradient);
  std::vector<Node*> readers{&attention};
  if (found.bias_gradient != nullptr) readers.push_back(found.bias_gradient);
  take_in_before(readers, found.before, match);
  take_in_after_y(readers, found.after_y, match);
  match.roles.clear();
  add_roles(match, attention, found);
}

FusionPattern pattern(const std::string& name, std::vector<std::string> roles, const std::string& result,
                      TakesAttention takes, const TakesAttention& takes_bias_gradient = {}) {
  return {.kind = name,
          .anchor = name,
          .roles = std::move(roles),
          .match = [=](Node& attention) { return match(attention, takes_bias_gradient); },
          .worth = [result, takes = std::move(takes)](
                       const FusionMatch& found) { return takes(found.maker(result)); },
          .complete = [=](FusionMatch& found) { complete(found, takes_bias_gradient); }};
}

std::vector<std::string> roles_of(bool gradient, std::initializer_list<std::string> others) {
  std::vector<std::string> roles{"q", "k", "v", "bias", "key_lengths", "y", "log_sum"};
  if (gradient) roles.insert(roles.end(), {"output_gradient", "q_gradient", "k_gradient", "v_gradient"});
  roles.insert(roles.end(), others);
  return roles;
}

// The lengths of keys come after it.
size_t bias_number(const Node& attention) {
  const size_t first = is_attention_gradient(attention) ? 6 : 3;
  return attention.attributes().contains("rate") ? first + 1 : first;
}

}  // namespace

bool is_attention_gradient(const Node& attention) {
  return is_one_of(attention, {"attention_gradient", "dropout_attention_gradient"});
}

const Value* bias_of_attention(const Node& attention) {
  return attention.operand(bias_number(attention));
}

const Value* key_lengths_of_attention(const Node& attention) {
  return attention.operand(bias_number(attention) + 1);
}

FusionPattern attention_gradient_pattern(TakesAttention takes, const TakesAttention& takes_bias_gradient) {
  return pattern("attention_gradient", roles_of(true, {"bias_gradient"}), "q_gradient", std::move(takes),
                 takes_bias_gradient);
}

FusionPattern attention_pattern(TakesAttention takes) {
  return pattern("attention", roles_of(false, {}), "y", std::move(takes));
}

FusionPattern dropout_attention_gradient_pattern(TakesAttention takes) {
  return pattern("dropout_attention_gradient", roles_of(true, {"counter"}), "q_gradient", std::move(takes));
}

FusionPattern dropout_attention_pattern(TakesAttention takes) {
  return pattern("dropout_attention", roles_of(false, {"counter"}), "y", std::move(takes));
}

}  // namespace tessera::backend
