#include "support/sample_operators.h"

#include "tessera/graph/operator.h"

namespace tessera::testing {
namespace {

OperatorSchema lists() {
  OperatorSchema schema;
  schema.name = "sample_lists";
  schema.operator_class = OperatorClass::movement;
  schema.inputs = {{.name = "x"}};
  schema.attributes = {{"factors", AttributeKind::reals, std::vector<double>(), "any"},
                       {"labels", AttributeKind::texts, std::vector<std::string>(), "any"}};
  schema.outputs = {"y"};
  schema.infer = [](const InferenceCall& call) { return std::vector<TensorType>{call.input(0)}; };
  schema.reference = [](const ReferenceCall& call) { *call.outputs[0] = call.inputs[0]->clone(); };
  return schema;
}

}  // namespace

void register_sample_operators() {
  [[maybe_unused]] static const bool once = [] {
    for (OperatorSchema schema : {lists()})
      OperatorRegistry::instance().add(std::move(schema));
    return true;
  }();
}

}  // namespace tessera::testing
