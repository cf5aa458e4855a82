#include "compile/kernel_failure.h"

#include <vector>

#include <fmt/ranges.h>

namespace tessera {

std::string operator_name_with_kind(const Node& node) {
  return node.body() == nullptr ? node.operator_name()
                                : fmt::format("{}:{}", node.operator_name(), node.attributes().text("kind"));
}

void fail_in_kernel(const Error& error, const std::string& kernel, const Node& node) {
  std::vector<std::string> types;
  for (const Value* input : node.inputs()) types.push_back(to_string(input->type()));
  fail(error.code(), "{}\n  in kernel {} of node '{}': {} of {}", error.what(), kernel, node.name(),
       operator_name_with_kind(node), fmt::join(types, ", "));
}

}  // namespace tessera
