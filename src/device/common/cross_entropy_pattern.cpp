#include "tessera/device/common/cross_entropy_pattern.h"

#include <algorithm>
#include <string>

#include "tessera/device/common/roles.h"
#include "tessera/graph/operator.h"
#include "tessera/ops/functions.h"
#include "tessera/passes/fuse.h"

namespace tessera::backend {
namespace {

int64_t classes_of(const Node& loss) {
  return ops::class_count(loss.attributes(), loss.input(0)->type().static_shape()[1]);
}

bool is_loss_of(const Node& node, const Node& gradient) {
  return node.operator_name() == "cross_entropy" && node.input(0) == gradient.input(0) &&
         node.input(1) == gradient.input(1) && node.attributes() == gradient.attributes();
}

// The search among the classes of logits that `reader` begins: all of their columns, or the first ones cut.
std::vector<Node*> search_of(Node& reader, const Node& gradient) {
  std::vector<Node*> found{&reader};
  if (reader.operator_name() == "slice") {
    const std::vector<int64_t>& starts = reader.attributes().integers("starts");
    const bool is_head = std::ranges::all_of(starts, [](int64_t start) { return start == 0; }) &&
                         reader.output()->shape().front() == gradient.input(0)->shape().front();
    Node* after = sole_reader(reader.output(), "argmax");
    if (!is_head || after == nullptr) return {};
    found.push_back(after);
  }
  const Node& search = *found.back();
  if (search.operator_name() != "argmax") return {};
  const int64_t axis = search.attributes().integer("axis");
  const bool is_along_classes =
      (axis == 1 || axis == -1) && search.input(0)->shape()[1] == classes_of(gradient);
  return is_along_classes ? found : std::vector<Node*>{};
}

// Of cross_entropy or its gradient, with what else reads the same logits.
std::optional<FusionMatch> match_at(Node& anchor) {
  FusionMatch match{.members = {&anchor}, .outputs = {}, .roles = {}};
  if (!anchor.input(0)->type().is_static() || !is_read(anchor)) return std::nullopt;
  match.add_roles_of(anchor);
  // What comes of it may be what the gradient waits for.
  const auto add = [&](const std::vector<Node*>& nodes, const char* role) {
    if (nodes.empty() || match.value(role) != nullptr) return;
    std::vector<Node*> members = match.members;
    members.insert(members.end(), nodes.begin(), nodes.end());
    if (!fuses_without_cycle(members)) return;
    match.members = std::move(members);
    match.add_role(role, nodes.back()->output());
  };
  for (Node* reader : readers_of(anchor.input(0))) {
    if (is_loss_of(*reader, anchor)) add({reader}, "loss");
    add(search_of(*reader, anchor), "likeliest");
  }
  match.outputs = visible_values(match.members);
  return match.members.size() > 1 ? std::optional(std::move(match)) : std::nullopt;
}

FusionPattern pattern_at(const std::string& anchor) {
  return {.kind = "cross_entropy",
          .anchor = anchor,
          .roles = {"logits", "labels", "loss_gradient", "logits_gradient", "loss", "likeliest"},
          .match = match_at};
}

}  // namespace

FusionPattern cross_entropy_pattern() {
  return pattern_at("cross_entropy_gradient");
}

FusionPattern evaluated_cross_entropy_pattern() {
  return pattern_at("cross_entropy");
}

CrossEntropyBody read_cross_entropy(const Node& node) {
  const Node& maker = maker_of_role(node, has_role(node, "logits_gradient") ? "logits_gradient" : "loss");
  const Shape shape = maker.input(0)->type().static_shape();
  return {.logits = input_in_role(node, "logits"),
          .labels = input_in_role(node, "labels"),
          .loss_gradient = optional_input_in_role(node, "loss_gradient"),
          .loss = output_in_role(node, "loss"),
          .gradient = output_in_role(node, "logits_gradient"),
          .likeliest = output_in_role(node, "likeliest"),
          .rows = shape[0],
          .columns = shape[1],
          .classes = classes_of(maker),
          .smoothing = maker.attributes().real("smoothing"),
          .ignored = maker.attributes().integer("ignored_label")};
}

}  // namespace tessera::backend
