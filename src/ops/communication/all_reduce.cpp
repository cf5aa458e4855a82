#include "ops/communication/communication.h"

namespace tessera::ops {
namespace {

std::vector<TensorType> infer_all_reduce(const InferenceCall& call) {
  check_ranks(call);
  check_reduction(call, {"sum", "mean", "maximum", "minimum"});
  return {call.inputs.begin(), call.inputs.end()};
}

// Of an extremum y all ranks that have it get an even share, as the elements of reduce_max do.
Value* share_of_extremum(const GradientCall& call, size_t i, Value* dy, const RankGroup& group) {
  Value* wins = equal(call.input(i), call.output(i));
  Value* winners = all_reduce(cast(wins, DataType::fp32), group);
  Value* share = divide(cast(all_reduce(dy, group), DataType::fp32), winners);
  return select(wins, cast(share, dy->data_type()), constant_like(dy, 0));
}

// Every rank's results depend on every rank's inputs: what is differentiated is the sum of what the ranks
// differentiate.
std::vector<Value*> gradient_all_reduce(const GradientCall& call) {
  const RankGroup group = group_of(call.node.attributes());
  const std::string& reduction = call.node.attributes().text("reduction");
  std::vector<Value*> dy = gradients_or_zeros(call);
  if (reduction == "sum" || reduction == "mean") return all_reduce(dy, group, reduction);
  for (size_t i = 0; i < dy.size(); ++i) dy[i] = share_of_extremum(call, i, dy[i], group);
  return dy;
}

OperatorSchema schema_all_reduce() {
  OperatorSchema schema = collective(
      "all_reduce",
      "Of each input the sum (mean, maximum, minimum) over all ranks, element by element; all ranks get the "
      "same bits. The inputs travel together. 16-bit types are added in fp32 and rounded once; a NaN of any "
      "rank is the result.",
      kNumericTypes);
  schema.traits.in_place = true;
  take_several(schema);
  schema.attributes.push_back(reduction_attribute("`sum`, `mean`, `maximum` or `minimum`"));
  schema.infer = infer_all_reduce;
  schema.gradient = gradient_all_reduce;
  schema.examples = {collective_example({3, 5}, DataType::fp32),
                     collective_example({}, DataType::fp32, {{"reduction", "mean"}}),
                     collective_example({37}, DataType::fp32, {{"reduction", "maximum"}}),
                     collective_example({0}, DataType::fp32, {{"reduction", "minimum"}})};
  for (const DataType type : {DataType::int8, DataType::uint8, DataType::int32, DataType::int64})
    schema.examples.push_back(collective_example({7}, type));
  schema.examples.push_back(collective_example_of_several({{2, 3}, {5}}));
  return schema;
}

const OperatorRegistration kRegistration{schema_all_reduce()};

}  // namespace
}  // namespace tessera::ops
