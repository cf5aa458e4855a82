#include "tessera/graph/operator.h"

namespace tessera::ops {
namespace {

void check_roles(const InferenceCall& call) {
  const Graph& body = *call.bodies.front();
  auto count = static_cast<int64_t>(body.inputs().size());
  for (const auto& node : body.nodes()) count += static_cast<int64_t>(node->outputs().size());
  const std::vector<int64_t>& values = call.attributes.integers("role_values");
  call.require(values.size() == call.attributes.texts("roles").size(), "each role has one value");
  for (const int64_t value : values)
    call.require(value >= 0 && value < count,
                 "role_values names value " + std::to_string(value) + " of " + std::to_string(count));
}

OperatorSchema fused() {
  OperatorSchema schema;
  schema.name = "fused";
  schema.documentation =
      "Several nodes that a device runs as one. The body is their unfused form and says all about the "
      "meaning: any device may run it node by node. `kind` names the pattern that was found, such as "
      "'convolution', for devices that have a kernel for it. Made by the fusion passes, after "
      "differentiation.";
  schema.operator_class = OperatorClass::fused;
  schema.inputs = {{.name = "inputs", .types = kAnyTypes, .type_variable = "", .variadic = true}};
  schema.attributes = {{.name = "kind",
                        .kind = AttributeKind::text,
                        .default_value = std::nullopt,
                        .documentation = "the pattern, which a device's kernel knows"},
                       {.name = "roles",
                        .kind = AttributeKind::texts,
                        .default_value = std::vector<std::string>{},
                        .documentation = "what values of the body are to that kernel, by name"},
                       {.name = "role_values",
                        .kind = AttributeKind::integers,
                        .default_value = std::vector<int64_t>{},
                        .documentation = "which value plays each role: the body's inputs and then its nodes' "
                                         "results, counted in order"}};
  schema.outputs = {"y"};
  schema.bodies = 1;
  schema.infer = [](const InferenceCall& call) {
    const Graph& body = *call.bodies.front();
    const auto& parameters = body.inputs();
    call.require(body.updates().empty(), "the body updates a state");
    call.require(parameters.size() == call.inputs.size(),
                 "the body takes " + std::to_string(parameters.size()) + " inputs, the node has " +
                     std::to_string(call.inputs.size()));
    for (size_t i = 0; i < parameters.size(); ++i) {
      call.require(
          parameters[i]->type() == call.input(i),
          "input '" + parameters[i]->name() + "' of the body is " + to_string(parameters[i]->type()));
    }
    call.require(!body.outputs().empty(), "the body makes nothing");
    check_roles(call);
    std::vector<TensorType> types;
    for (const Graph::Output& output : body.outputs()) types.push_back(output.value->type());
    return types;
  };
  return schema;
}

const OperatorRegistration kFused(fused());

}  // namespace
}  // namespace tessera::ops
