#include <fmt/format.h>

#include "ops/communication/communication.h"

namespace tessera::ops {
namespace {

std::vector<TensorType> infer(const InferenceCall& call) {
  check_ranks(call);
  check_reduction(call, {"sum", "mean"});
  const int64_t ranks = call.attributes.integer("ranks");
  const Dimension rows = first_extent(call);
  const std::optional<Dimension> part = rows.divide_exactly(Dimension(ranks));
  call.require(part.has_value(),
               fmt::format("{} rows cannot be shared evenly among {} ranks", rows.to_string(), ranks));
  TensorType y = call.input(0);
  y.shape[0] = *part;
  return {y};
}

std::vector<Value*> gradient(const GradientCall& call) {
  const RankGroup group = group_of(call.node.attributes());
  const bool is_mean = call.node.attributes().text("reduction") == "mean";
  Value* dy = call.gradient();
  return {all_gather(is_mean ? multiply(dy, 1.0 / static_cast<double>(group.ranks)) : dy, group)};
}

OperatorSchema schema() {
  OperatorSchema schema =
      collective("reduce_scatter",
                 "The rows of x are as many parts, one after the other, as there are ranks; rank r gets the "
                 "sum (mean) over all ranks of part r. Sums as in all_reduce.",
                 kNumericTypes);
  schema.attributes.push_back(reduction_attribute("`sum` or `mean`"));
  schema.infer = infer;
  schema.gradient = gradient;
  schema.examples = {collective_example({3, 5}, DataType::fp32),
                     collective_example({7}, DataType::fp32, {{"reduction", "mean"}, {"group", "row"}}),
                     collective_example({0, 3}, DataType::fp32)};
  for (const DataType type : {DataType::int8, DataType::uint8, DataType::int32, DataType::int64})
    schema.examples.push_back(collective_example({4, 3}, type));
  return schema;
}

const OperatorRegistration kRegistration{schema()};

}  // namespace
}  // namespace tessera::ops
