#include "tessera/graph/operator.h"
#include "tessera/ops/functions.h"

namespace tessera::ops {
namespace {

std::vector<TensorType> infer_one_hot(const InferenceCall& call) {
  const int64_t depth = call.attributes.integer("depth");
  call.require(depth >= 1, "the depth must be at least 1, got " + std::to_string(depth));
  TensorType y{call.attributes.data_type("type"), call.input(0).shape};
  y.shape.emplace_back(depth);
  return {y};
}

std::vector<Value*> decompose_one_hot(const Node& node, std::span<Value* const> inputs) {
  Value* indices = inputs[0];
  SymbolicShape column = indices->shape();
  column.emplace_back(1);
  Value* places = iota(indices->graph(), {node.attributes().integer("depth")}, 0, indices->data_type());
  return {cast(equal(reshape(indices, column), places), node.attributes().data_type("type"))};
}

OperatorExample example_one_hot(Shape shape, int depth, DataType index_type, DataType type) {
  return {.inputs = {{std::move(shape), 0, depth - 1.0, index_type}},
          .attributes = {{"depth", depth}, {"type", type}}};
}

OperatorSchema schema_one_hot() {
  OperatorSchema schema;
  schema.name = "one_hot";
  schema.documentation =
      "A new last axis of `depth` elements, 1 at the place that the index names and 0 elsewhere; all 0 for "
      "an "
      "index outside [0, depth).";
  schema.operator_class = OperatorClass::indexing;
  schema.inputs = {{.name = "indices", .types = kIndexTypes}};
  schema.attributes = {{.name = "depth",
                        .kind = AttributeKind::integer,
                        .default_value = {},
                        .documentation = "extent of the new axis"},
                       {.name = "type",
                        .kind = AttributeKind::data_type,
                        .default_value = DataType::fp32,
                        .documentation = "of the result"}};
  schema.outputs = {"y"};
  schema.infer = infer_one_hot;
  schema.gradient = [](const GradientCall&) -> std::vector<Value*> { return {nullptr}; };
  schema.decompose = decompose_one_hot;
  schema.examples = {example_one_hot({5}, 4, DataType::int32, DataType::fp32),
                     example_one_hot({2, 3}, 7, DataType::int64, DataType::fp16),
                     example_one_hot({}, 3, DataType::int64, DataType::boolean),
                     example_one_hot({0}, 3, DataType::int32, DataType::int64)};
  return schema;
}

const OperatorRegistration kRegistration{schema_one_hot()};

}  // namespace
}  // namespace tessera::ops
