#include "tessera/device/common/cross_entropy_pattern.h"

#include <algorithm>

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

std::optional<FusionMatch> match_at(Node& gradient) {
  FusionMatch match{.members = {&gradient}, .outputs = {}, .roles = {}};
  if (!gradient.input(0)->type().is_static()) return std::nullopt;
  match.add_roles_of(gradient);
  // What comes of it may be what the gradient waits for.
  const auto add = [&](const std::vector<Node*>& nodes, const char* role) {
    if (nodes.empty() || match.value(role) != nullptr) return;
    std::vector<Node*> members = match.members;
    members.insert(members.end(), nodes.begin(), nodes.end());
    if (!fuses_without_cycle(members)) return;
    match.members = std::move(members);
    match.add_role(role, nodes.back()->output());
  };
  for (Node* reader : readers_of(gradient.input(0))) {
    if (is_loss_of(*reader, gradient)) add({reader}, "loss");
    add(search_of(*reader, gradient), "likeliest");
  }
  match.outputs = visible_values(match.members);
  return match.members.size() > 1 ? std::optional(std::move(match)) : std::nullopt;
}

}  // namespace

FusionPattern cross_entropy_pattern() {
  return {.kind = "cross_entropy",
          .anchor = "cross_entropy_gradient",
          .roles = {"logits", "labels", "loss_gradient", "logits_gradient", "loss", "likeliest"},
          .match = match_at};
}

CrossEntropyBody read_cross_entropy(const Node& node) {
  const Node& gradient = maker_of_role(node, "logits_gradient");
  const Shape shape = gradient.input(0)->type().static_shape();
  return {.logits = input_in_role(node, "logits"),
          .labels = input_in_role(node, "labels"),
          .loss_gradient = input_in_role(node, "loss_gradient"),
          .gradient = output_in_role(node, "logits_gradient").value(),
          .loss = output_in_role(node, "loss"),
          .likeliest = output_in_role(node, "likeliest"),
          .rows = shape[0],
          .columns = shape[1],
          .classes = classes_of(gradient),
          .smoothing = gradient.attributes().real("smoothing"),
          .ignored = gradient.attributes().integer("ignored_label")};
}

}  // namespace tessera::backend
