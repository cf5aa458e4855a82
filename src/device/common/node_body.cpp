#include "tessera/device/common/node_body.h"

#include "tessera/base/error.h"
#include "tessera/device/common/refusal.h"

namespace tessera::backend {

const Node& main_node(const Node& node, std::string_view operator_name) {
  if (node.body() == nullptr) return node;
  const Node* main = nullptr;
  for (const auto& inner : node.body()->nodes()) {
    if (inner->operator_name() != operator_name) continue;
    refuse_unless(main == nullptr, "the body holds several nodes of operator {}", operator_name);
    main = inner.get();
  }
  refuse_unless(main != nullptr, "the body holds no node of operator {}", operator_name);
  return *main;
}

size_t input_index(const Node& node, const Value* value) {
  if (node.body() == nullptr) {
    for (size_t i = 0; i < node.inputs().size(); ++i) {
      if (node.input(i) == value) return i;
    }
  } else if (value->producer() == nullptr) {
    return value->index();
  }
  fail(ErrorCode::unsupported, "'{}' is made inside the body", value->name());
}

std::optional<size_t> output_index(const Node& node, const Value* value) {
  if (node.body() == nullptr) return value->index();
  const auto& outputs = node.body()->outputs();
  for (size_t i = 0; i < outputs.size(); ++i) {
    if (outputs[i].value == value) return i;
  }
  return std::nullopt;
}

}  // namespace tessera::backend
