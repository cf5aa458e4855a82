#include "ops/elementwise.h"

namespace tessera::ops {

std::vector<TensorType> infer_broadcast(const InferenceCall& call, DataType type) {
  SymbolicShape shape = call.input(0).shape;
  for (const TensorType& input : call.inputs.subspan(1)) shape = broadcast_shapes(shape, input.shape);
  return {{type, std::move(shape)}};
}

OperatorSchema unary_primitive(UnaryPrimitive description) {
  OperatorSchema schema;
  schema.name = description.name;
  schema.documentation = description.documentation;
  schema.operator_class = OperatorClass::elementwise;
  schema.inputs = {{.name = "x", .types = description.types}};
  schema.outputs = {"y"};
  schema.infer = [boolean = description.makes_boolean](const InferenceCall& call) {
    return infer_broadcast(call, boolean ? DataType::boolean : call.input(0).data_type);
  };
  schema.scalar = [scalar = description.scalar](std::span<const double> x, const Attributes&) {
    return scalar(x[0]);
  };
  if (description.gradient) {
    schema.gradient = [gradient = description.gradient](const GradientCall& call) -> std::vector<Value*> {
      return {gradient(call.input(0), call.output(), call.gradient())};
    };
  } else {
    schema.gradient = [](const GradientCall&) -> std::vector<Value*> { return {nullptr}; };
  }
  const DataType type = description.types.contains(DataType::fp32) ? DataType::fp32 : DataType::boolean;
  schema.examples = {{.inputs = {{{3, 5}, description.low, description.high, type}}, .attributes = {}},
                     {.inputs = {{{}, description.low, description.high, type}}, .attributes = {}},
                     {.inputs = {{{1037}, description.low, description.high, type}}, .attributes = {}}};
  return schema;
}

OperatorSchema binary_primitive(BinaryPrimitive description) {
  OperatorSchema schema;
  schema.name = description.name;
  schema.documentation = description.documentation;
  schema.operator_class = OperatorClass::elementwise;
  schema.inputs = {{.name = "a", .types = description.types}, {.name = "b", .types = description.types}};
  schema.outputs = {"y"};
  schema.infer = [boolean = description.makes_boolean](const InferenceCall& call) {
    return infer_broadcast(call, boolean ? DataType::boolean : call.input(0).data_type);
  };
  schema.scalar = [scalar = description.scalar](std::span<const double> x, const Attributes&) {
    return scalar(x[0], x[1]);
  };
  schema.gradient = [gradient = description.gradient](const GradientCall& call) -> std::vector<Value*> {
    if (!gradient) return {nullptr, nullptr};
    const auto [a, b] = gradient(call.input(0), call.input(1), call.output(), call.gradient());
    return {a == nullptr ? nullptr : reduce_to_shape(a, call.input(0)->shape()),
            b == nullptr ? nullptr : reduce_to_shape(b, call.input(1)->shape())};
  };
  const double low = description.low;
  const double high = description.high;
  const DataType type = description.types.contains(DataType::fp32) ? DataType::fp32 : DataType::boolean;
  const auto example = [&](Shape a, Shape b, DataType t) {
    return OperatorExample{.inputs = {{std::move(a), low, high, t}, {std::move(b), low, high, t}},
                           .attributes = {}};
  };
  schema.examples = {example({4, 7}, {4, 7}, type), example({4, 7}, {7}, type), example({}, {3}, type),
                     example({5, 1, 3}, {2, 1}, type)};
  if (description.types.contains(DataType::int32)) {
    schema.examples.push_back(example({6}, {6}, DataType::int32));
    schema.examples.push_back(example({6}, {6}, DataType::int64));
  }
  return schema;
}

OperatorSchema unary_composite(UnaryComposite description) {
  OperatorSchema schema;
  schema.name = description.name;
  schema.documentation = description.documentation;
  schema.operator_class = OperatorClass::elementwise;
  schema.inputs = {{.name = "x"}};
  schema.attributes = description.attributes;
  schema.outputs = {"y"};
  schema.infer = [](const InferenceCall& call) { return infer_broadcast(call, call.input(0).data_type); };
  schema.decompose = [formula = description.formula](const Node& node, std::span<Value* const> inputs) {
    return std::vector<Value*>{formula(inputs[0], node.attributes())};
  };
  if (description.gradient) {
    schema.gradient = [gradient = description.gradient](const GradientCall& call) -> std::vector<Value*> {
      return {gradient(call.input(0), call.output(), call.gradient(), call.node.attributes())};
    };
  }
  schema.examples = {{.inputs = {{{3, 5}, description.low, description.high}}, .attributes = {}},
                     {.inputs = {{{1037}, description.low, description.high}}, .attributes = {}}};
  return schema;
}

}  // namespace tessera::ops
