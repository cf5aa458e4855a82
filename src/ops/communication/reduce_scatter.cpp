#include <fmt/format.h>

#include "ops/communication/communication.h"

namespace tessera::ops {
namespace {

std::vector<TensorType> infer_reduce_scatter(const InferenceCall& call) {
  check_ranks(call);
  check_reduction(call, {"sum", "mean"});
  const int64_t ranks = call.attributes.integer("ranks");
  std::vector<TensorType> types(call.inputs.begin(), call.inputs.end());
  for (size_t i = 0; i < types.size(); ++i) {
    const Dimension rows = first_extent(call, i);
    const std::optional<Dimension> part = rows.divide_exactly(Dimension(ranks));
    call.require(part.has_value(),
                 fmt::format("{} rows cannot be shared evenly among {} ranks", rows.to_string(), ranks));
    types[i].shape[0] = *part;
  }
  return types;
}

std::vector<Value*> gradient_reduce_scatter(const GradientCall& call) {
  const RankGroup group = group_of(call.node.attributes());
  const bool is_mean = call.node.attributes().text("reduction") == "mean";
  std::vector<Value*> dy = gradients_or_zeros(call);
  for (Value*& one : dy) one = is_mean ? multiply(one, 1.0 / static_cast<double>(group.ranks)) : one;
  return results_of("all_gather", dy, group);
}

OperatorSchema schema_reduce_scatter() {
  OperatorSchema schema =
      collective("reduce_scatter",
                 "The rows of each input are as many parts, one after the other, as there are ranks; rank r "
                 "gets the sum (mean) over all ranks of part r. The inputs travel together. Sums as in "
                 "all_reduce.",
                 kNumericTypes);
  take_several(schema);
  schema.attributes.push_back(reduction_attribute("`sum` or `mean`"));
  schema.infer = infer_reduce_scatter;
  schema.gradient = gradient_reduce_scatter;
  schema.examples = {collective_example({3, 5}, DataType::fp32),
                     collective_example({7}, DataType::fp32, {{"reduction", "mean"}, {"group", "row"}}),
                     collective_example({0, 3}, DataType::fp32)};
  for (const DataType type : {DataType::int8, DataType::uint8, DataType::int32, DataType::int64})
    schema.examples.push_back(collective_example({4, 3}, type));
  schema.examples.push_back(collective_example_of_several({{2, 3}, {5}}));
  return schema;
}

const OperatorRegistration kRegistration{schema_reduce_scatter()};

}  // namespace
}  // namespace tessera::ops
