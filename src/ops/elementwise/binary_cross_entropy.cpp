#include "ops/elementwise/elementwise.h"

namespace tessera::ops {
namespace {

std::vector<Value*> gradient_binary_cross_entropy(const GradientCall& call) {
  Value* logits = call.input(0);
  Value* targets = call.input(1);
  Value* dy = call.gradient();
  return {multiply(dy, subtract(sigmoid(logits), targets)), negate(multiply(dy, logits))};
}

OperatorExample example_binary_cross_entropy(const Shape& shape) {
  return {.inputs = {{shape, -4, 4}, {shape, 0, 1}}, .attributes = {}};
}

OperatorSchema schema_binary_cross_entropy() {
  OperatorSchema schema;
  schema.name = "binary_cross_entropy";
  schema.documentation =
      "-t log(sigmoid(x)) - (1 - t) log(1 - sigmoid(x)) for logits x and targets t in [0, 1], elementwise, "
      "as "
      "softplus(x) - x t, which is finite for every finite logit.";
  schema.operator_class = OperatorClass::elementwise;
  schema.inputs = {{.name = "logits"}, {.name = "targets"}};
  schema.outputs = {"loss"};
  schema.infer = [](const InferenceCall& call) {
    call.require(call.input(0).shape == call.input(1).shape, "logits and targets must have one shape");
    return std::vector{call.input(0)};
  };
  schema.gradient = gradient_binary_cross_entropy;
  schema.decompose = [](const Node&, std::span<Value* const> inputs) {
    return std::vector{subtract(softplus(inputs[0]), multiply(inputs[0], inputs[1]))};
  };
  schema.examples = {example_binary_cross_entropy({3, 5}), example_binary_cross_entropy({}),
                     example_binary_cross_entropy({1037})};
  return schema;
}

const OperatorRegistration kRegistration{schema_binary_cross_entropy()};

}  // namespace
}  // namespace tessera::ops
