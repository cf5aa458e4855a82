#include "tessera/graph/operator.h"

#include <algorithm>
#include <set>

#include <fmt/ranges.h>

#include "tessera/base/error.h"
#include "tessera/base/text.h"

namespace tessera {
namespace {

// "(fp32[2], _, fp32[3])"
std::string describe(const NodeParts& parts) {
  std::vector<std::string> operands;
  for (const TensorType& type : parts.inputs) operands.push_back(to_string(type));
  for (size_t left_out : parts.places.left_out())
    operands.insert(operands.begin() + static_cast<std::ptrdiff_t>(left_out), "_");
  return fmt::format("({})", fmt::join(operands, ", "));
}

void check_inputs(const OperatorSchema& schema, const OperandPlaces& places,
                  std::span<const TensorType> types) {
  size_t required = 0;
  for (const InputSpecification& input : schema.inputs) required += input.optional ? 0 : 1;
  const bool variadic = !schema.inputs.empty() && schema.inputs.back().variadic;
  const size_t written = types.size() + places.left_out().size();
  require(types.size() >= required && (variadic || written <= schema.inputs.size()), ErrorCode::invalid_graph,
          "it takes {}{} inputs, got {}", variadic || required != schema.inputs.size() ? "at least " : "",
          required, types.size());
  for (size_t i = 0; i < schema.inputs.size(); ++i) {
    require(schema.inputs[i].optional || places.place(i).has_value(), ErrorCode::invalid_graph,
            "input '{}' may not be left out", schema.inputs[i].name);
  }
  std::map<std::string, DataType> variables;
  for (size_t i = 0; i < types.size(); ++i) {
    const InputSpecification& input = schema.operand(places.specification(i));
    require(
        input.types.contains(types[i].data_type), ErrorCode::invalid_graph, "input '{}' may not be {}{}",
        input.name, to_string(types[i].data_type),
        kComputedTypes.contains(types[i].data_type) ? "" : ", in which nothing is computed: cast it first");
    if (input.type_variable.empty()) continue;
    const auto [known, added] = variables.emplace(input.type_variable, types[i].data_type);
    require(added || known->second == types[i].data_type, ErrorCode::invalid_graph,
            "input '{}' is {} where the inputs before it are {}", input.name, to_string(types[i].data_type),
            to_string(known->second));
  }
}

void check_bodies(const OperatorSchema& schema, std::span<const std::unique_ptr<Graph>> bodies) {
  const auto is_null = [](const std::unique_ptr<Graph>& body) { return body == nullptr; };
  const auto given =
      bodies.size() - static_cast<size_t>(std::count_if(bodies.begin(), bodies.end(), is_null));
  require(schema.bodies > 0 || given == 0, ErrorCode::invalid_graph, "it takes no body");
  const std::string needed = schema.bodies == 1 ? "a body" : fmt::format("{} bodies", schema.bodies);
  require(given == schema.bodies && given == bodies.size(), ErrorCode::invalid_graph, "it needs {}, got {}",
          needed, given);
}

void complete_attributes(const OperatorSchema& schema, Attributes& attributes) {
  for (const auto& [name, attribute] : attributes.entries()) {
    const AttributeSpecification* specification = schema.find_attribute(name);
    if (specification == nullptr) {
      std::vector<std::string> names;
      for (const AttributeSpecification& known : schema.attributes) names.push_back(known.name);
      fail(ErrorCode::invalid_graph, "it has no attribute '{}'{}", name, did_you_mean(name, names));
    }
    if (specification->kind == attribute.kind()) continue;
    // Integers, shapes and reals are written alike, and so are their lists; the schema decides.
    if (specification->kind == AttributeKind::shape && attribute.kind() == AttributeKind::integers) {
      attributes.set(name, to_symbolic(std::get<std::vector<int64_t>>(attribute.variant())));
    } else if (specification->kind == AttributeKind::real && attribute.kind() == AttributeKind::integer) {
      attributes.set(name, static_cast<double>(std::get<int64_t>(attribute.variant())));
    } else if (specification->kind == AttributeKind::reals && attribute.kind() == AttributeKind::integers) {
      const auto& integers = std::get<std::vector<int64_t>>(attribute.variant());
      attributes.set(name, std::vector<double>(integers.begin(), integers.end()));
    } else {
      fail(ErrorCode::invalid_graph, "attribute '{}' must be {}, got {}", name,
           to_string(specification->kind), to_string(attribute.kind()));
    }
  }
  for (const AttributeSpecification& specification : schema.attributes) {
    if (attributes.contains(specification.name)) continue;
    require(specification.default_value.has_value(), ErrorCode::invalid_graph, "attribute '{}' is required",
            specification.name);
    attributes.set(specification.name, *specification.default_value);
  }
  for (const auto& [name, attribute] : attributes.entries()) {
    if (attribute.kind() == AttributeKind::shape) check_type({DataType::boolean, attributes.shape(name)});
  }
}

}  // namespace

void InferenceCall::require(bool condition, const std::string& rule) const {
  if (!condition) throw Error(ErrorCode::invalid_graph, rule);
}

const TensorType* InferenceCall::operand(size_t specification) const {
  const std::optional<size_t> place = places.place(specification);
  return place.has_value() ? &inputs[*place] : nullptr;
}

std::vector<Value*> GradientCall::of_inputs(std::span<Value* const> by_specification) const {
  std::vector<Value*> result;
  for (size_t i = 0; i < by_specification.size(); ++i) {
    if (node.place(i).has_value()) result.push_back(by_specification[i]);
  }
  return result;
}

const Tensor* ReferenceCall::operand(size_t specification) const {
  const std::optional<size_t> place = node.place(specification);
  return place.has_value() ? inputs[*place] : nullptr;
}

std::vector<TensorType> infer_outputs(const OperatorSchema& schema, const std::string& node_name,
                                      const NodeParts& parts, Attributes& attributes) {
  try {
    check_inputs(schema, parts.places, parts.inputs);
    complete_attributes(schema, attributes);
    check_bodies(schema, parts.bodies);
    std::vector<TensorType> outputs = schema.infer({parts, schema, attributes});
    for (const TensorType& output : outputs) check_type(output);
    return outputs;
  } catch (const Error& error) {
    fail(ErrorCode::invalid_graph, "node '{}': {}{}: {}", node_name, schema.name, describe(parts),
         error.what());
  }
}

LowPrecision OperatorSchema::low_precision() const {
  if (operator_class == OperatorClass::contraction) return LowPrecision::narrow;
  if (operator_class == OperatorClass::movement) return LowPrecision::follows;
  return traits.low_precision;
}

const InputSpecification& OperatorSchema::operand(size_t number) const {
  return inputs.at(std::min(number, inputs.size() - 1));
}

const AttributeSpecification* OperatorSchema::find_attribute(std::string_view attribute) const {
  for (const AttributeSpecification& specification : attributes) {
    if (specification.name == attribute) return &specification;
  }
  return nullptr;
}

OperatorRegistry& OperatorRegistry::instance() {
  static OperatorRegistry registry;
  return registry;
}

void OperatorRegistry::add(OperatorSchema schema) {
  const std::string name = schema.name;
  const bool holds_bodies = schema.operator_class == OperatorClass::control;
  require(schema.operator_class == OperatorClass::fused ? schema.bodies == 1
                                                        : holds_bodies == (schema.bodies > 0),
          ErrorCode::internal, "operator '{}' says that it has {} bodies, which its class does not allow",
          name, schema.bodies);
  require(schemas_.emplace(name, std::move(schema)).second, ErrorCode::internal,
          "operator '{}' is registered twice", name);
}

const OperatorSchema* OperatorRegistry::find(std::string_view name) const {
  const auto found = schemas_.find(name);
  return found == schemas_.end() ? nullptr : &found->second;
}

const OperatorSchema& OperatorRegistry::get(std::string_view name) const {
  if (const OperatorSchema* schema = find(name)) return *schema;
  std::vector<std::string> names;
  for (const auto& [known, schema] : schemas_) names.push_back(known);
  fail(ErrorCode::invalid_graph, "unknown operator '{}'{}", name, did_you_mean(name, names));
}

std::vector<const OperatorSchema*> OperatorRegistry::all() const {
  std::vector<const OperatorSchema*> result;
  for (const auto& [name, schema] : schemas_) result.push_back(&schema);
  return result;
}

namespace {

double bytes_of_values(const Node& node) {
  double bytes = 0;
  const std::set<const Value*> inputs(node.inputs().begin(), node.inputs().end());
  for (const Value* input : inputs) bytes += static_cast<double>(input->type().bytes());
  for (const auto& output : node.outputs()) bytes += static_cast<double>(output->type().bytes());
  return bytes;
}

}  // namespace

Cost cost_of(const Node& node) {
  Cost cost;
  cost.bytes = node.schema().bytes ? node.schema().bytes(node) : bytes_of_values(node);
  if (node.body() != nullptr) {
    for (const auto& inner : node.body()->nodes()) cost.flops += cost_of(*inner).flops;
  } else if (node.schema().flops) {
    cost.flops = node.schema().flops(node);
  } else if (node.schema().operator_class == OperatorClass::elementwise) {
    cost.flops = static_cast<double>(node.output()->type().element_count());
  }
  return cost;
}

}  // namespace tessera
