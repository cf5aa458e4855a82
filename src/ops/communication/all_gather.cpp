#include "ops/communication/communication.h"

namespace tessera::ops {
namespace {

std::vector<TensorType> infer_all_gather(const InferenceCall& call) {
  check_ranks(call);
  std::vector<TensorType> types(call.inputs.begin(), call.inputs.end());
  for (size_t i = 0; i < types.size(); ++i)
    types[i].shape[0] = first_extent(call, i) * Dimension(call.attributes.integer("ranks"));
  return types;
}

std::vector<Value*> gradient_all_gather(const GradientCall& call) {
  return results_of("reduce_scatter", gradients_or_zeros(call), group_of(call.node.attributes()));
}

OperatorSchema schema_all_gather() {
  OperatorSchema schema =
      collective("all_gather",
                 "Of each input the rows of all ranks, one rank's after the other's; all ranks get all. The "
                 "inputs travel together.",
                 kComputedTypes);
  schema.traits.moves_only = true;
  take_several(schema);
  schema.infer = infer_all_gather;
  schema.gradient = gradient_all_gather;
  schema.examples = {collective_example({3, 5}, DataType::fp32),
                     collective_example({7}, DataType::fp32, {{"group", "row"}}),
                     collective_example({0, 3}, DataType::fp32)};
  for (const DataType type :
       {DataType::int8, DataType::uint8, DataType::int32, DataType::int64, DataType::boolean})
    schema.examples.push_back(collective_example({4, 3}, type));
  schema.examples.push_back(collective_example_of_several({{2, 3}, {5}}));
  return schema;
}

const OperatorRegistration kRegistration{schema_all_gather()};

}  // namespace
}  // namespace tessera::ops
