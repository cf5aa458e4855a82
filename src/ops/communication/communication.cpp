#include "ops/communication/communication.h"

#include <algorithm>
#include <cstring>

#include <fmt/ranges.h>

#include "tessera/base/error.h"

namespace tessera::ops {
namespace {

void copy_for_one_rank(const ReferenceCall& call) {
  const int64_t ranks = call.attributes().integer("ranks");
  require(ranks == 1, ErrorCode::unsupported,
          "'{}' ({}) needs the other {} of {} ranks: run it on a device, with CompileOptions::communicators",
          call.node.name(), call.node.operator_name(), ranks - 1, ranks);
  for (size_t i = 0; i < call.outputs.size(); ++i) {
    if (call.inputs[i]->bytes() > 0)
      std::memcpy(call.outputs[i]->raw(), call.inputs[i]->raw(), call.inputs[i]->bytes());
  }
}

// Refuses a root that is no rank of the group.
std::vector<TensorType> infer_rooted(const InferenceCall& call) {
  check_ranks(call);
  const int64_t ranks = call.attributes.integer("ranks");
  const int64_t root = call.attributes.integer("root");
  call.require(root >= 0 && root < ranks,
               fmt::format("the root must be one of {} ranks, got {}", ranks, root));
  return {call.input(0)};
}

}  // namespace

OperatorSchema collective(const std::string& name, const std::string& documentation, TypeSet types) {
  OperatorSchema schema;
  schema.name = name;
  schema.documentation = documentation;
  schema.operator_class = OperatorClass::communication;
  schema.inputs = {{.name = "x", .types = types}};
  schema.attributes = {{.name = "group",
                        .kind = AttributeKind::text,
                        .default_value = "",
                        .documentation = "the ranks that take part, by their name; empty: all"},
                       {.name = "ranks",
                        .kind = AttributeKind::integer,
                        .default_value = 1,
                        .documentation = "how many they are; 1: the result is x"}};
  schema.outputs = {"y"};
  schema.reference = copy_for_one_rank;
  return schema;
}

void take_several(OperatorSchema& schema) {
  schema.inputs.front().name = "inputs";
  schema.inputs.front().variadic = true;
  schema.inputs.front().type_variable.clear();
}

AttributeSpecification reduction_attribute(const std::string& legal) {
  return {.name = "reduction",
          .kind = AttributeKind::text,
          .default_value = "sum",
          .documentation = legal + "; a mean is of floating types alone"};
}

RankGroup group_of(const Attributes& attributes) {
  return {attributes.integer("ranks"), attributes.text("group")};
}

void check_ranks(const InferenceCall& call) {
  const int64_t ranks = call.attributes.integer("ranks");
  call.require(ranks > 0, fmt::format("there must be a rank, got {}", ranks));
}

void check_reduction(const InferenceCall& call, const std::vector<std::string>& legal) {
  const std::string& reduction = call.attributes.text("reduction");
  call.require(std::find(legal.begin(), legal.end(), reduction) != legal.end(),
               fmt::format("the reduction must be one of {}, got '{}'", fmt::join(legal, ", "), reduction));
  const bool are_floating = std::all_of(call.inputs.begin(), call.inputs.end(), [](const TensorType& input) {
    return kFloatingTypes.contains(input.data_type);
  });
  call.require(reduction != "mean" || are_floating, "a mean is of floating types alone");
}

Dimension first_extent(const InferenceCall& call, size_t input) {
  call.require(call.input(input).rank() > 0,
               "an input needs an axis: its first one is shared among the ranks");
  return call.input(input).shape[0];
}

std::vector<Value*> results_of(const std::string& collective, const std::vector<Value*>& inputs,
                               const RankGroup& group) {
  std::vector<Value*> results;
  const Node* node = apply(collective, inputs, {{"group", group.name}, {"ranks", group.ranks}});
  for (const auto& output : node->outputs()) results.push_back(output.get());
  return results;
}

std::vector<Value*> gradients_or_zeros(const GradientCall& call) {
  std::vector<Value*> dy;
  for (size_t i = 0; i < call.output_gradients.size(); ++i)
    dy.push_back(call.gradient(i) != nullptr ? call.gradient(i) : zeros_like(call.output(i)));
  return dy;
}

OperatorExample collective_example(const Shape& shape, DataType type, const Attributes& attributes) {
  const bool is_boolean = type == DataType::boolean;
  return {.inputs = {{shape, is_boolean ? 0.0 : -2.0, is_boolean ? 1.0 : 2.0, type}},
          .attributes = attributes};
}

OperatorExample collective_example_of_several(const std::vector<Shape>& shapes) {
  OperatorExample example{.attributes = {{"group", "row"}}};
  for (const Shape& shape : shapes)
    example.inputs.push_back(collective_example(shape, DataType::fp32).inputs.front());
  return example;
}

OperatorSchema rooted_collective(const RootedCollective& description) {
  OperatorSchema schema = collective(description.name, description.documentation, description.types);
  schema.traits.in_place = true;
  schema.traits.moves_only = description.moves_only;
  schema.attributes.push_back({.name = "root",
                               .kind = AttributeKind::integer,
                               .default_value = 0,
                               .documentation = description.root});
  schema.infer = infer_rooted;
  schema.gradient = [gradient = description.gradient](const GradientCall& call) -> std::vector<Value*> {
    const Attributes& attributes = call.node.attributes();
    return {gradient(call.gradient(), group_of(attributes), attributes.integer("root"))};
  };
  schema.examples = {collective_example({3, 5}, DataType::fp32), collective_example({}, DataType::fp32),
                     collective_example({0}, DataType::fp32, {{"group", "row"}})};
  for (const DataType type : kAllDataTypes) {
    if (description.types.contains(type) && !is_floating(type))
      schema.examples.push_back(collective_example({7}, type));
  }
  return schema;
}

}  // namespace tessera::ops
