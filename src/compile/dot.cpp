#include "tessera/compile/dot.h"

#include <fmt/format.h>

#include "tessera/graph/operator.h"

namespace tessera {
namespace {

const char* color_of(OperatorClass operator_class) {
  switch (operator_class) {
    case OperatorClass::contraction:
      return "#cfe2ff";
    case OperatorClass::normalization:
      return "#d1e7dd";
    case OperatorClass::fused:
      return "#fff3cd";
    case OperatorClass::reduction:
    case OperatorClass::loss:
      return "#f8d7da";
    default:
      return "#f1f3f5";
  }
}

}  // namespace

std::string to_dot(const Graph& graph) {
  std::string text = fmt::format(
      "digraph \"{}\" {{\n  node [shape=box, style=\"rounded,filled\", fontname=Helvetica];\n", graph.name());
  for (const auto& input : graph.inputs()) {
    if (input->role() != InputRole::input) continue;
    text += fmt::format("  \"{}\" [label=\"{}\", shape=ellipse, fillcolor=white];\n", input->name(),
                        input->name());
  }
  for (const auto& node : graph.nodes()) {
    if (node->inputs().empty()) continue;
    const std::string kind =
        node->body() != nullptr ? node->attributes().text("kind") : node->operator_name();
    text += fmt::format("  \"{}\" [label=\"{}\\n{}\", fillcolor=\"{}\"];\n", node->name(), node->name(), kind,
                        color_of(node->schema().operator_class));
    for (const Value* input : node->inputs()) {
      const bool is_source = input->producer() == nullptr ? input->role() == InputRole::input
                                                          : !input->producer()->inputs().empty();
      if (!is_source) continue;
      const std::string& from = input->producer() == nullptr ? input->name() : input->producer()->name();
      text += fmt::format("  \"{}\" -> \"{}\" [label=\"{}\", fontsize=9];\n", from, node->name(),
                          to_string(input->type()));
    }
  }
  return text + "}\n";
}

}  // namespace tessera
