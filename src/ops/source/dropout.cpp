#include "ops/elementwise/elementwise.h"

namespace tessera::ops {
namespace {

std::vector<TensorType> infer_dropout(const InferenceCall& call) {
  const double rate = call.attributes.real("rate");
  call.require(rate >= 0 && rate < 1, "the rate must be in [0, 1), got " + std::to_string(rate));
  call.require(call.input(1).shape == SymbolicShape{2}, "the counter must be [2]: seed and step");
  return {call.input(0)};
}

std::vector<Value*> decompose_dropout(const Node& node, std::span<Value* const> inputs) {
  const double rate = node.attributes().real("rate");
  Value* number = random_uniform(inputs[1], inputs[0]->shape(), node.attributes().integer("stream"));
  Value* kept = greater_equal(number, constant_like(number, rate));
  return {select_or_zero(kept, multiply(inputs[0], 1 / (1 - rate)))};
}

// The mask is recomputed from the counter instead of being kept from the forward half.
std::vector<Value*> gradient_dropout(const GradientCall& call) {
  return {dropout(call.gradient(), call.input(1), call.node.attributes().real("rate"),
                  call.node.attributes().integer("stream")),
          nullptr};
}

OperatorExample example_dropout(Shape shape, double rate, int stream) {
  return {.inputs = {{std::move(shape), -2, 2}, {{2}, 0, 1000, DataType::int64}},
          .attributes = {{"rate", rate}, {"stream", stream}}};
}

OperatorSchema schema_dropout() {
  OperatorSchema schema;
  schema.name = "dropout";
  schema.documentation =
      "Zeroes each element with probability `rate` and divides the rest by 1 - rate, so that the mean stays. "
      "Element i "
      "is kept where number i of random_uniform of the same counter and stream is at least `rate`.";
  // Not elementwise: the counter does not broadcast against x.
  schema.operator_class = OperatorClass::source;
  schema.traits = {.low_precision = LowPrecision::follows, .joins_clusters = true, .random = true};
  schema.inputs = {{.name = "x"}, {.name = "counter", .types = {DataType::int64}, .type_variable = ""}};
  schema.attributes = {
      {.name = "rate", .kind = AttributeKind::real, .default_value = {}, .documentation = "in [0, 1)"},
      {.name = "stream",
       .kind = AttributeKind::integer,
       .default_value = {},
       .documentation = "of the random numbers"}};
  schema.outputs = {"y"};
  schema.infer = infer_dropout;
  schema.gradient = gradient_dropout;
  schema.decompose = decompose_dropout;
  schema.examples = {example_dropout({3, 5}, 0.5, 0), example_dropout({}, 0.1, 1),
                     example_dropout({1037}, 0.1, 2), example_dropout({7}, 0.0, 3)};
  return schema;
}

const OperatorRegistration kRegistration{schema_dropout()};

}  // namespace
}  // namespace tessera::ops
