#include "ops/communication/communication.h"

namespace tessera::ops {
namespace {

std::vector<TensorType> infer(const InferenceCall& call) {
  check_ranks(call);
  TensorType y = call.input(0);
  y.shape[0] = first_extent(call) * Dimension(call.attributes.integer("ranks"));
  return {y};
}

OperatorSchema schema() {
  OperatorSchema schema =
      collective("all_gather", "The rows of all ranks, one rank's after the other's; all ranks get all.",
                 kComputedTypes);
  schema.infer = infer;
  schema.gradient = [](const GradientCall& call) -> std::vector<Value*> {
    return {reduce_scatter(call.gradient(), group_of(call.node.attributes()))};
  };
  schema.examples = {collective_example({3, 5}, DataType::fp32),
                     collective_example({7}, DataType::fp32, {{"group", "row"}}),
                     collective_example({0, 3}, DataType::fp32)};
  for (const DataType type :
       {DataType::int8, DataType::uint8, DataType::int32, DataType::int64, DataType::boolean})
    schema.examples.push_back(collective_example({4, 3}, type));
  return schema;
}

const OperatorRegistration kRegistration{schema()};

}  // namespace
}  // namespace tessera::ops
