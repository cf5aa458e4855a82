#include "ops/source/random.h"

#include <limits>

namespace tessera::ops {
namespace {

std::vector<TensorType> infer_random(const InferenceCall& call) {
  call.require(call.input(0).shape == SymbolicShape{2},
               "the counter must be [2]: seed and step, got " + to_string(call.input(0).shape));
  const int64_t stream = call.attributes.integer("stream");
  call.require(stream >= 0 && stream <= std::numeric_limits<uint32_t>::max(),
               "the stream must be in [0, 2^32), got " + std::to_string(stream));
  const DataType type = call.attributes.data_type("type");
  call.require(kFloatingTypes.contains(type),
               "the type must be floating, got " + std::string(to_string(type)));
  return {{type, call.attributes.shape("shape")}};
}

OperatorExample example_random(const Shape& shape, int stream, DataType type) {
  return {.inputs = {{{2}, 0, 1000, DataType::int64}},
          .attributes = {{"shape", to_symbolic(shape)}, {"stream", stream}, {"type", type}}};
}

}  // namespace

OperatorSchema random_operator(const RandomOperator& description) {
  OperatorSchema schema;
  schema.name = description.name;
  schema.documentation = description.documentation;
  schema.operator_class = OperatorClass::source;
  schema.traits = {.joins_clusters = description.joins_clusters, .random = true};
  schema.inputs = {{.name = "counter", .types = {DataType::int64}}};
  schema.attributes = {
      {.name = "shape", .kind = AttributeKind::shape, .default_value = {}, .documentation = "of the result"},
      {.name = "stream",
       .kind = AttributeKind::integer,
       .default_value = {},
       .documentation = "tells users of one counter apart; in [0, 2^32)"},
      {.name = "type",
       .kind = AttributeKind::data_type,
       .default_value = DataType::fp32,
       .documentation = "of the result"}};
  schema.outputs = {"y"};
  schema.infer = infer_random;
  schema.gradient = [](const GradientCall&) -> std::vector<Value*> { return {nullptr}; };
  schema.reference = [number = description.number](const ReferenceCall& call) {
    const auto counter = call.inputs[0]->data<int64_t>();
    const Random random(static_cast<uint64_t>(counter[0]),
                        step_stream(call.attributes().integer("stream"), counter[1]));
    Tensor& output = *call.outputs[0];
    for (int64_t i = 0; i < output.size(); ++i) {
      output.set(i, number(random, static_cast<uint64_t>(i), output.data_type()));
    }
  };
  schema.examples = {example_random({3, 5}, 0, DataType::fp32), example_random({}, 1, DataType::fp64),
                     example_random({1037}, 2, DataType::bf16), example_random({0}, 3, DataType::fp16)};
  return schema;
}

}  // namespace tessera::ops
