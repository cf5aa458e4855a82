#include "ops/elementwise/elementwise.h"

namespace tessera::ops {
namespace {

std::vector<Value*> gradient(const GradientCall& call) {
  const bool flows = is_floating(call.input(0)->data_type()) && is_floating(call.output()->data_type());
  return {flows ? cast(call.gradient(), call.input(0)->data_type()) : nullptr};
}

OperatorExample example(Shape shape, DataType from, DataType to, double low, double high) {
  return {.inputs = {{std::move(shape), low, high, from}}, .attributes = {{"type", to}}};
}

const OperatorRegistration kRegistration{{
    .name = "cast",
    .documentation = "The values of x in another data type. To a floating type: rounded to nearest even. To "
                     "an integer type: "
                     "truncated towards zero, saturated at the type's limits, NaN becomes 0. To bool: true "
                     "where x is not 0.",
    .operator_class = OperatorClass::elementwise,
    .inputs = {{.name = "x", .types = kAnyTypes}},
    .attributes = {{.name = "type",
                    .kind = AttributeKind::data_type,
                    .default_value = {},
                    .documentation = "of the result"}},
    .outputs = {"y"},
    .infer =
        [](const InferenceCall& call) { return infer_broadcast(call, call.attributes.data_type("type")); },
    .gradient = gradient,
    .flops = {},
    .reference = {},
    .examples = {example({3, 5}, DataType::fp32, DataType::fp64, -2, 2),
                 example({}, DataType::fp64, DataType::fp64, -2, 2),
                 example({17}, DataType::fp32, DataType::int32, -9, 9),
                 example({17}, DataType::fp32, DataType::boolean, -1, 1),
                 example({17}, DataType::int64, DataType::fp32, -9, 9),
                 example({17}, DataType::boolean, DataType::fp32, 0, 1)},
    // The store of the result rounds.
    .scalar = [](std::span<const double> x, const Attributes&) { return x[0]; },
    .decompose = {},
}};

}  // namespace
}  // namespace tessera::ops
