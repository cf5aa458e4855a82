#include "support/sample_operators.h"

#include "tessera/graph/operator.h"
#include "tessera/ops/functions.h"

namespace tessera::testing {
namespace {

enum AffineOperand : size_t { kX, kBias, kScale, kOffset };

OperatorSchema affine() {
  OperatorSchema schema;
  schema.name = "sample_affine";
  schema.operator_class = OperatorClass::contraction;
  schema.inputs = {{.name = "x"},
                   {.name = "bias", .optional = true},
                   {.name = "scale", .optional = true},
                   {.name = "offset"}};
  schema.outputs = {"y"};
  schema.infer = [](const InferenceCall& call) {
    for (const size_t operand : {kBias, kScale, kOffset}) {
      const TensorType* type = call.operand(operand);
      call.require(type == nullptr || type->shape == call.input(0).shape,
                   call.schema.inputs[operand].name + " must be as x");
    }
    return std::vector<TensorType>{call.input(0)};
  };
  schema.gradient = [](const GradientCall& call) {
    Value* dy = call.gradient();
    Value* scale = call.operand(kScale);
    const std::vector<Value*> by_operand{scale == nullptr ? dy : ops::multiply(dy, scale), dy,
                                         ops::multiply(dy, call.operand(kX)), ops::negate(dy)};
    return call.of_inputs(by_operand);
  };
  schema.reference = [](const ReferenceCall& call) {
    const auto at = [&](size_t operand, int64_t element, double otherwise) {
      const Tensor* tensor = call.operand(operand);
      return tensor == nullptr ? otherwise : tensor->at(element);
    };
    for (int64_t i = 0; i < call.outputs[0]->size(); ++i)
      call.outputs[0]->set(i, at(kX, i, 0) * at(kScale, i, 1) + at(kBias, i, 0) - at(kOffset, i, 0));
  };
  return schema;
}

std::vector<TensorType> result_types(const Graph& body) {
  std::vector<TensorType> types;
  for (const Graph::Output& output : body.outputs()) types.push_back(output.value->type());
  return types;
}

OperatorSchema choice() {
  OperatorSchema schema;
  schema.name = "sample_choice";
  schema.operator_class = OperatorClass::control;
  schema.bodies = 2;
  schema.inputs = {{.name = "condition", .types = kBooleanTypes, .type_variable = ""},
                   {.name = "values", .types = kAnyTypes, .type_variable = "", .variadic = true}};
  schema.outputs = {"y"};
  schema.infer = [](const InferenceCall& call) {
    for (const auto& body : call.bodies) {
      call.require(body->inputs().size() + 1 == call.inputs.size(), "each body takes the values");
      for (size_t i = 0; i < body->inputs().size(); ++i)
        call.require(body->inputs()[i]->type() == call.input(i + 1), "a body takes another type");
    }
    call.require(result_types(*call.bodies[0]) == result_types(*call.bodies[1]), "the bodies differ");
    return result_types(*call.bodies[0]);
  };
  schema.reference = [](const ReferenceCall& call) {
    std::vector<Tensor> values;
    for (const Tensor* value : call.inputs.subspan(1)) values.push_back(*value);
    const bool condition = call.inputs[0]->at(0) != 0;
    const ReferenceResult result = run_reference(*call.node.bodies()[condition ? 0 : 1], values);
    for (size_t i = 0; i < call.outputs.size(); ++i) *call.outputs[i] = result.outputs[i];
  };
  return schema;
}

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
    for (OperatorSchema schema : {affine(), choice(), lists()})
      OperatorRegistry::instance().add(std::move(schema));
    return true;
  }();
}

}  // namespace tessera::testing
