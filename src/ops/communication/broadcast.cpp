#include "ops/communication/communication.h"

namespace tessera::ops {
namespace {

OperatorSchema schema() {
  OperatorSchema schema =
      collective("broadcast", "The x of one rank, for all; the others' is not read.", kComputedTypes);
  schema.attributes.push_back(root_attribute("the rank whose x it is"));
  schema.infer = [](const InferenceCall& call) -> std::vector<TensorType> {
    check_ranks(call);
    check_root(call);
    return {call.input(0)};
  };
  schema.gradient = [](const GradientCall& call) -> std::vector<Value*> {
    const Attributes& attributes = call.node.attributes();
    return {reduce(call.gradient(), group_of(attributes), attributes.integer("root"))};
  };
  schema.examples = {collective_example({3, 5}, DataType::fp32), collective_example({}, DataType::fp32),
                     collective_example({0}, DataType::fp32, {{"group", "row"}})};
  for (const DataType type :
       {DataType::int8, DataType::uint8, DataType::int32, DataType::int64, DataType::boolean})
    schema.examples.push_back(collective_example({7}, type));
  return schema;
}

const OperatorRegistration kRegistration{schema()};

}  // namespace
}  // namespace tessera::ops
