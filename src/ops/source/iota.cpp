#include "tessera/graph/operator.h"

#include "ops/axes.h"

namespace tessera::ops {
namespace {

std::vector<TensorType> infer_iota(const InferenceCall& call) {
  const SymbolicShape& shape = call.attributes.shape("shape");
  normalized_axis(call.attributes.integer("axis"), static_cast<int64_t>(shape.size()));
  const DataType type = call.attributes.data_type("type");
  call.require(type != DataType::boolean, "the type may not be bool");
  return {{type, shape}};
}

void reference_iota(const ReferenceCall& call) {
  Tensor& output = *call.outputs[0];
  const Shape& shape = output.shape();
  const int64_t axis = normalized_axis(call.attributes().integer("axis"), static_cast<int64_t>(shape.size()));
  const int64_t stride = row_major_strides(shape)[static_cast<size_t>(axis)];
  const int64_t extent = shape[static_cast<size_t>(axis)];
  for (int64_t i = 0; i < output.size(); ++i) output.set(i, static_cast<double>(i / stride % extent));
}

OperatorExample example_iota(const Shape& shape, int axis, DataType type) {
  return {.inputs = {}, .attributes = {{"shape", to_symbolic(shape)}, {"axis", axis}, {"type", type}}};
}

OperatorSchema schema_iota() {
  OperatorSchema schema;
  schema.name = "iota";
  schema.documentation = "Each element is its own index along the axis: 0, 1, 2, ...";
  schema.operator_class = OperatorClass::source;
  schema.attributes = {
      {.name = "shape", .kind = AttributeKind::shape, .default_value = {}, .documentation = "of the result"},
      {.name = "axis",
       .kind = AttributeKind::integer,
       .default_value = 0,
       .documentation = "along which it counts; negative from the end"},
      {.name = "type",
       .kind = AttributeKind::data_type,
       .default_value = {},
       .documentation = "of the result"}};
  schema.outputs = {"y"};
  schema.infer = infer_iota;
  schema.reference = reference_iota;
  schema.examples = {example_iota({7}, 0, DataType::int32), example_iota({2, 3, 5}, 1, DataType::int64),
                     example_iota({3, 5}, -1, DataType::fp32), example_iota({0, 3}, 0, DataType::fp32)};
  return schema;
}

const OperatorRegistration kRegistration{schema_iota()};

}  // namespace
}  // namespace tessera::ops
