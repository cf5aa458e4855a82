#include "tessera/ops/documentation.h"

#include <utility>
#include <vector>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "ops/elementwise/elementwise.h"

namespace tessera::ops {
namespace {

constexpr std::pair<OperatorClass, const char*> kClasses[] = {
    {OperatorClass::source, "Source: constants and random numbers"},
    {OperatorClass::elementwise, "Elementwise: each element from those at its (broadcast) place"},
    {OperatorClass::reduction, "Reduction: sums and extremes over axes"},
    {OperatorClass::contraction, "Contraction: matrix products, convolutions, attention"},
    {OperatorClass::normalization, "Normalization"},
    {OperatorClass::pooling, "Pooling"},
    {OperatorClass::loss, "Loss"},
    {OperatorClass::indexing, "Indexing: addresses that depend on data"},
    {OperatorClass::movement, "Movement: elements without arithmetic"},
    {OperatorClass::communication, "Communication: among the ranks of a group"},
    {OperatorClass::control, "Control: one of several graphs, or one over and over"},
    {OperatorClass::fused, "Fused"},
};

constexpr std::pair<TypeSet, const char*> kTypeSets[] = {
    {kFloatingTypes, "floating"},
    {kIndexTypes, "index"},
    {kIntegerTypes, "integer"},
    {kNumericTypes, "numeric"},
    {kComputedTypes, "computed"},
    {kRealTypes, "real"},
    {kAnyTypes, "any"},
    {kArithmeticTypes, "arithmetic"},
    {kArithmeticTypes | kBooleanTypes, "arithmetic or bool"},
};

std::string describe(TypeSet types) {
  for (const auto& [known, name] : kTypeSets) {
    if (known.bits == types.bits) return name;
  }
  std::string names;
  for (const DataType type : kAllDataTypes) {
    if (types.contains(type)) names += (names.empty() ? "" : ", ") + std::string(to_string(type));
  }
  return names;
}

std::string describe(const InputSpecification& input) {
  const char* ellipsis = input.variadic ? "..." : "";
  const char* optional = input.optional ? ", optional" : "";
  return "`" + input.name + "`" + ellipsis + " " + describe(input.types) + optional;
}

// A default as the graph text writes it; tensors and shapes have none.
std::string describe(const Attribute& value) {
  return std::visit(
      []<typename T>(const T& v) -> std::string {
        if constexpr (std::is_same_v<T, bool>) {
          return v ? "true" : "false";
        } else if constexpr (std::is_same_v<T, std::string>) {
          return "\"" + v + "\"";
        } else if constexpr (std::is_same_v<T, DataType>) {
          return std::string(to_string(v));
        } else if constexpr (std::is_same_v<T, Tensor> || std::is_same_v<T, SymbolicShape>) {
          return "a value";
        } else {
          return fmt::format("{}", v);  // numbers, and lists of numbers or texts
        }
      },
      value.variant());
}

std::string describe(const AttributeSpecification& attribute) {
  const std::string preset =
      attribute.default_value.has_value() ? " = " + describe(*attribute.default_value) : "";
  return "`" + attribute.name + "` " + std::string(to_string(attribute.kind)) + preset + ": " +
         attribute.documentation;
}

template <typename Items, typename Describe>
std::string cell(const Items& items, Describe&& describe_item) {
  std::string text;
  for (const auto& item : items) text += (text.empty() ? "" : "<br>") + describe_item(item);
  return text;
}

std::string escaped(const std::string& text) {
  std::string result;
  for (const char c : text) {
    if (c == '|' || c == '*') result += '\\';
    result += c;
  }
  return result;
}

std::string row(const OperatorSchema& schema) {
  return "| `" + schema.name + "` | " +
         cell(schema.inputs, [](const InputSpecification& input) { return describe(input); }) + " | " +
         escaped(cell(schema.attributes, [](const AttributeSpecification& a) { return describe(a); })) +
         " | " + cell(schema.outputs, [](const std::string& name) { return "`" + name + "`"; }) + " | " +
         escaped(schema.documentation) + " |\n";
}

}  // namespace

std::string operators_markdown() {
  std::string text =
      "# Operators\n\n"
      "Made from the schemas by `ops_tests --update`; a test compares. How to add one:\n"
      "[adding_an_operator.md](adding_an_operator.md).\n\n"
      "Types: *floating* is fp32, fp64, fp16, bf16; *index* is int32, int64; *integer* is int8, uint8, "
      "int32, "
      "int64;\n*numeric* is floating or integer; *arithmetic* is numeric, int16, uint16 or uint32; "
      "*computed* is "
      "numeric or bool;\n*real* is any that is not complex; *any* are all [element types](graph_text.md). An "
      "attribute without a default is\nrequired.\n\n"
      "Neighboring elementwise operators and the reductions after them become clusters, which compute in "
      "fp32 and round to 16\nbits once, at the end. Of 16-bit operands `floor`, `ceil`, `round`, casts to "
      "integers and comparisons inside a cluster\nsee what is not rounded yet: where it lies next to a step, "
      "they may differ by a whole unit from what the operators give\none by one.\n";
  for (const auto& [operator_class, title] : kClasses) {
    std::string rows;
    for (const OperatorSchema* schema : OperatorRegistry::instance().all()) {
      if (schema->operator_class == operator_class) rows += row(*schema);
    }
    if (rows.empty()) continue;
    text += std::string("\n## ") + title +
            "\n\n| Operator | Inputs | Attributes | Outputs | What it does |\n|---|---|---|---|---|\n" + rows;
  }
  return text;
}

}  // namespace tessera::ops
