#include <cmath>
#include <unordered_map>

#include "tessera/base/error.h"
#include "tessera/graph/graph.h"
#include "tessera/graph/operator.h"

#include "graph/initial_value.h"

namespace tessera {
namespace {

std::string print_real(double value) {
  if (std::isnan(value)) return "nan";
  if (std::isinf(value)) return value > 0 ? "inf" : "-inf";
  return fmt::format("{}", value);  // the shortest text that reads back as the same double
}

std::string print_quoted(const std::string& text) {
  std::string result = "\"";
  for (char c : text) {
    if (c == '"' || c == '\\') result += '\\';
    if (c == '\n') {
      result += "\\n";
    } else {
      result += c;
    }
  }
  return result + "\"";
}

std::string print_element(const Tensor& tensor, int64_t index) {
  const DataType type = tensor.data_type();
  if (type == DataType::int64) return std::to_string(tensor.data<int64_t>()[static_cast<size_t>(index)]);
  if (type == DataType::uint64) return std::to_string(tensor.data<uint64_t>()[static_cast<size_t>(index)]);
  if (!is_complex(type)) return print_real(tensor.at(index));
  const Tensor parts = tensor.parts();
  return print_real(parts.at(2 * index)) + " " + print_real(parts.at(2 * index + 1));
}

std::string print_elements(const Tensor& tensor) {
  std::string text = "(";
  for (int64_t i = 0; i < tensor.size(); ++i) text += (i > 0 ? ", " : "") + print_element(tensor, i);
  return text + ")";
}

template <typename Items, typename Print>
std::string print_list(const Items& items, Print&& print_one) {
  std::string text = "[";
  for (const auto& item : items) text += (text.size() > 1 ? ", " : "") + print_one(item);
  return text + "]";
}

std::string print_attribute(const Attribute& attribute) {
  return std::visit(
      [](const auto& value) -> std::string {
        using T = std::decay_t<decltype(value)>;
        if constexpr (std::is_same_v<T, bool>) {
          return value ? "true" : "false";
        } else if constexpr (std::is_same_v<T, int64_t>) {
          return std::to_string(value);
        } else if constexpr (std::is_same_v<T, double>) {
          return print_real(value);
        } else if constexpr (std::is_same_v<T, std::string>) {
          return print_quoted(value);
        } else if constexpr (std::is_same_v<T, DataType>) {
          return std::string(to_string(value));
        } else if constexpr (std::is_same_v<T, Tensor>) {
          return fmt::format("{}{} {}", to_string(value.data_type()), to_string(value.shape()),
                             print_elements(value));
        } else if constexpr (std::is_same_v<T, std::vector<double>>) {
          return print_list(value, print_real);
        } else if constexpr (std::is_same_v<T, std::vector<std::string>>) {
          return print_list(value, print_quoted);
        } else {
          return to_string(value);  // integers and shapes
        }
      },
      attribute.variant());
}

std::string print_indented(const Graph& graph, const std::string& indent);

std::string print_node(const Node& node, const std::string& indent) {
  std::string text;
  for (const auto& output : node.outputs()) {
    text += fmt::format("{}%{}: {}", text.empty() ? "" : ", ", output->name(), to_string(output->type()));
  }
  text += fmt::format(" = {}(", node.operator_name());
  std::string operands;
  for (const Value* operand : node.operands(node.inputs()))
    operands += (operands.empty() ? "" : ", ") + (operand == nullptr ? "_" : "%" + operand->name());
  text += operands + ")";
  std::string attributes;
  for (const auto& [name, attribute] : node.attributes().entries()) {
    const AttributeSpecification* specification = node.schema().find_attribute(name);
    if (specification->default_value.has_value() && *specification->default_value == attribute) continue;
    attributes += fmt::format("{}{} = {}", attributes.empty() ? "" : ", ", name, print_attribute(attribute));
  }
  if (!attributes.empty()) text += " {" + attributes + "}";
  for (const auto& body : node.bodies()) text += " body " + print_indented(*body, indent);
  return text;
}

std::string print_indented(const Graph& graph, const std::string& indent) {
  std::string text = fmt::format("graph {}(", graph.name());
  for (size_t i = 0; i < graph.inputs().size(); ++i) {
    const Value& input = *graph.inputs()[i];
    text += fmt::format("{}\n{}  {} %{}: {}", i == 0 ? "" : ",", indent, to_string(input.role()),
                        input.name(), to_string(input.type()));
    if (const Tensor* initial = input.initial())
      text += " = " + (is_spread(*initial) ? print_element(*initial, 0) : print_elements(*initial));
  }
  text += ") {\n";
  for (const auto& node : graph.nodes())
    text += fmt::format("{}  {}\n", indent, print_node(*node, indent + "  "));
  for (const auto& output : graph.outputs()) {
    text += fmt::format("{}  output {} = %{}\n", indent, output.name, output.value->name());
  }
  for (const auto& update : graph.updates()) {
    text += fmt::format("{}  update %{} = %{}\n", indent, update.state->name(), update.next->name());
  }
  return text + indent + "}";
}

}  // namespace

std::string print(const Graph& graph) {
  return print_indented(graph, "") + "\n";
}

std::string print(const Node& node) {
  return print_node(node, "");
}

}  // namespace tessera
