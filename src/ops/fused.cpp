#include "tessera/graph/operator.h"

namespace tessera::ops {
namespace {

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
                        .documentation = "the pattern, which a device's kernel knows"}};
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
    std::vector<TensorType> types;
    for (const Graph::Output& output : body.outputs()) types.push_back(output.value->type());
    return types;
  };
  return schema;
}

const OperatorRegistration kFused(fused());

}  // namespace
}  // namespace tessera::ops
