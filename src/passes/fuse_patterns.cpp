// The device's patterns, in its order.
#include <algorithm>
#include <span>

#include "tessera/base/error.h"
#include "tessera/graph/operator.h"
#include "tessera/passes/fuse.h"

#include "passes/passes.h"

namespace tessera {

void FusionMatch::add_roles_of(const Node& node) {
  const auto add = [&](const std::string& name, Value* played_by) {
    if (played_by != nullptr && value(name) == nullptr) add_role(name, played_by);
  };
  const OperatorSchema& schema = node.schema();
  for (size_t i = 0; i < schema.inputs.size(); ++i) add(schema.inputs[i].name, node.operand(i));
  for (size_t i = 0; i < schema.outputs.size(); ++i) add(schema.outputs[i], node.output(i));
}

Value* FusionMatch::value(std::string_view role) const {
  const auto found = std::find_if(roles.begin(), roles.end(),
                                  [&](const FusionRole& candidate) { return candidate.name == role; });
  return found == roles.end() ? nullptr : found->value;
}

size_t FusionMatch::count(std::string_view role) const {
  return static_cast<size_t>(std::count_if(
      roles.begin(), roles.end(), [&](const FusionRole& candidate) { return candidate.name == role; }));
}

Node& FusionMatch::maker(std::string_view role) const {
  Value* played_by = value(role);
  require(played_by != nullptr && played_by->producer() != nullptr, ErrorCode::internal,
          "no node of the match makes '{}'", role);
  return *played_by->producer();
}

namespace passes {
namespace {

void check_roles(const FusionPattern& pattern, const FusionMatch& match) {
  for (const FusionRole& role : match.roles) {
    const bool known =
        std::find(pattern.roles.begin(), pattern.roles.end(), role.name) != pattern.roles.end();
    require(known, ErrorCode::internal, "the pattern '{}' declares no role '{}'", pattern.kind, role.name);
  }
}

bool fuse_at(Graph& graph, Node* anchor, const FusionPattern& pattern) {
  std::optional<FusionMatch> match = pattern.match(*anchor);
  if (!match.has_value() || (pattern.worth && !pattern.worth(*match)) || !fuses_without_cycle(match->members))
    return false;
  match->anchor = anchor;
  if (pattern.complete) pattern.complete(*match);
  check_roles(pattern, *match);
  Node* fused = fuse_nodes(graph, pattern.kind, match->members, match->outputs, match->roles);
  if (pattern.finish) pattern.finish(*match, *fused);
  return true;
}

// A pattern and the alternatives to it.
bool fuse_everywhere(Graph& graph, std::span<const FusionPattern> patterns) {
  // By name: a fusion erases its members, perhaps some that are waiting to be asked.
  std::vector<std::string> anchors;
  for (const Node* node : nodes_of(graph, patterns.front().anchor)) anchors.push_back(node->name());
  bool changed = false;
  for (const std::string& name : anchors) {
    const Value* value = graph.find(name);
    Node* anchor = value == nullptr ? nullptr : producer_of(value, patterns.front().anchor);
    if (anchor == nullptr) continue;
    changed = std::any_of(patterns.begin(), patterns.end(),
                          [&](const FusionPattern& pattern) { return fuse_at(graph, anchor, pattern); }) ||
              changed;
  }
  return changed;
}

}  // namespace

bool fuse_patterns(Graph& graph, const PassContext& context) {
  const std::span<const FusionPattern> patterns = context.target.patterns;
  bool changed = false;
  for (size_t begin = 0; begin < patterns.size();) {
    size_t end = begin + 1;
    while (end < patterns.size() && patterns[end].alternative &&
           patterns[end].anchor == patterns[begin].anchor)
      ++end;
    changed = fuse_everywhere(graph, patterns.subspan(begin, end - begin)) || changed;
    begin = end;
  }
  return changed;
}

}  // namespace passes
}  // namespace tessera
