#include "tessera/base/elements.h"

#include "ops/elementwise/elementwise.h"

namespace tessera::ops {
namespace {

std::vector<Value*> gradient_cast(const GradientCall& call) {
  const bool flows = kFloatingTypes.contains(call.input(0)->data_type()) &&
                     kFloatingTypes.contains(call.output()->data_type());
  return {flows ? cast(call.gradient(), call.input(0)->data_type()) : nullptr};
}

void reference_cast(const ReferenceCall& call) {
  const Tensor& x = *call.inputs[0];
  Tensor& y = *call.outputs[0];
  cast_elements(x.data_type(), x.raw(), y.data_type(), y.raw(), x.size(),
                call.attributes().boolean("saturate"));
}

std::vector<TensorType> infer_cast(const InferenceCall& call) {
  const DataType type = call.attributes.data_type("type");
  call.require(kRealTypes.contains(type), "the result may not be " + std::string(to_string(type)));
  return infer_broadcast(call, type);
}

OperatorExample example_cast(Shape shape, DataType from, DataType to, double low, double high) {
  return {.inputs = {{std::move(shape), low, high, from}}, .attributes = {{"type", to}}};
}

const OperatorRegistration kRegistration{{
    .name = "cast",
    .documentation =
        "The values of x in another data type. To a floating type: rounded to nearest even (64-bit numbers "
        "by "
        "way of fp32 where the type has 16 bits or fewer), to fp8_e8m0 to the nearest power of two, the "
        "greater of two. To an integer type: truncated towards zero, NaN becomes 0. To bool: true where x is "
        "not 0.",
    .operator_class = OperatorClass::elementwise,
    .inputs = {{.name = "x", .types = kRealTypes}},
    .attributes = {{.name = "type",
                    .kind = AttributeKind::data_type,
                    .default_value = {},
                    .documentation = "of the result"},
                   {.name = "saturate",
                    .kind = AttributeKind::boolean,
                    .default_value = true,
                    .documentation = "what an 8-bit floating type or an integer cannot hold becomes what is "
                                     "nearest. Else infinity, or NaN where the type has none; and of "
                                     "integers the lowest bits stay"}},
    .outputs = {"y"},
    .infer = infer_cast,
    .gradient = gradient_cast,
    .flops = {},
    .reference = reference_cast,
    .examples = {example_cast({3, 5}, DataType::fp32, DataType::fp64, -2, 2),
                 example_cast({}, DataType::fp64, DataType::fp64, -2, 2),
                 example_cast({17}, DataType::fp32, DataType::int32, -9, 9),
                 example_cast({17}, DataType::fp32, DataType::boolean, -1, 1),
                 example_cast({17}, DataType::int64, DataType::fp32, -9, 9),
                 example_cast({17}, DataType::boolean, DataType::fp32, 0, 1),
                 example_cast({19}, DataType::int16, DataType::uint64, -9, 9),
                 example_cast({19}, DataType::uint32, DataType::int4, 0, 40),
                 example_cast({19}, DataType::fp32, DataType::fp8_e4m3fn, -600, 600),
                 example_cast({19}, DataType::fp8_e5m2, DataType::fp16, -4, 4),
                 example_cast({3, 5}, DataType::fp32, DataType::fp4_e2m1, -8, 8),
                 example_cast({3, 5}, DataType::int2, DataType::fp32, -2, 1)},
    // For devices that evaluate clusters of primitives: the store of the result rounds.
    .scalar = [](std::span<const double> x, const Attributes&) { return x[0]; },
    .decompose = {},
}};

}  // namespace
}  // namespace tessera::ops
