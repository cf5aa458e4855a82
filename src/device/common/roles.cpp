#include "tessera/device/common/roles.h"

#include "tessera/base/error.h"
#include "tessera/device/common/refusal.h"
#include "tessera/passes/fuse.h"

namespace tessera::backend {

bool has_role(const Node& node, std::string_view role) {
  return !values_in_role(node, role).empty();
}

const Value& in_role(const Node& node, std::string_view role) {
  const std::vector<const Value*> values = values_in_role(node, role);
  refuse_unless(!values.empty(), "nothing in the node is the '{}'", role);
  return *values.front();
}

const Node& maker_of_role(const Node& node, std::string_view role) {
  const Node* maker = in_role(node, role).producer();
  refuse_unless(maker != nullptr, "the '{}' is made outside", role);
  return *maker;
}

size_t input_in_role(const Node& node, std::string_view role) {
  return input_index(node, &in_role(node, role));
}

std::optional<size_t> optional_input_in_role(const Node& node, std::string_view role) {
  return has_role(node, role) ? std::optional(input_in_role(node, role)) : std::nullopt;
}

std::vector<size_t> inputs_in_role(const Node& node, std::string_view role) {
  std::vector<size_t> inputs;
  for (const Value* value : values_in_role(node, role)) inputs.push_back(input_index(node, value));
  return inputs;
}

std::optional<size_t> output_in_role(const Node& node, std::string_view role) {
  return has_role(node, role) ? output_index(node, &in_role(node, role)) : std::nullopt;
}

size_t input_index(const Node& node, const Value* value) {
  if (node.body() == nullptr) {
    for (size_t i = 0; i < node.inputs().size(); ++i) {
      if (node.input(i) == value) return i;
    }
  } else if (value->producer() == nullptr) {
    return value->index();
  }
  refuse("'{}' is made inside the body", value->name());
}

std::optional<size_t> output_index(const Node& node, const Value* value) {
  if (node.body() == nullptr)
    return value->producer() == &node ? std::optional(value->index()) : std::nullopt;
  const auto& outputs = node.body()->outputs();
  for (size_t i = 0; i < outputs.size(); ++i) {
    if (outputs[i].value == value) return i;
  }
  return std::nullopt;
}

}  // namespace tessera::backend
