#include "ops/elementwise/elementwise.h"

#include "ops/movement/strided.h"

namespace tessera::ops {
namespace {

using IntegerFunction = std::function<int64_t(int64_t, int64_t)>;

template <typename T>
void run_integer(const ReferenceCall& call, const IntegerFunction& function) {
  const auto a = call.inputs[0]->data<T>();
  const auto b = call.inputs[1]->data<T>();
  Tensor& output = *call.outputs[0];
  int64_t position = 0;
  const auto loop = [&]<typename Result>(std::span<Result> result) {
    walk(output.shape(),
         {broadcast_strides(call.inputs[0]->shape(), output.shape()),
          broadcast_strides(call.inputs[1]->shape(), output.shape())},
         [&](const std::vector<int64_t>& offsets) {
           result[static_cast<size_t>(position++)] = static_cast<Result>(
               function(a[static_cast<size_t>(offsets[0])], b[static_cast<size_t>(offsets[1])]));
         });
  };
  if (output.data_type() == DataType::boolean) {
    loop(output.data<bool>());
  } else {
    loop(output.data<T>());
  }
}

void run_double(const ReferenceCall& call, const std::function<double(double, double)>& scalar) {
  Tensor& output = *call.outputs[0];
  int64_t position = 0;
  walk(output.shape(),
       {broadcast_strides(call.inputs[0]->shape(), output.shape()),
        broadcast_strides(call.inputs[1]->shape(), output.shape())},
       [&](const std::vector<int64_t>& offsets) {
         output.set(position++, scalar(call.inputs[0]->at(offsets[0]), call.inputs[1]->at(offsets[1])));
       });
}

void run_binary(const ReferenceCall& call, const std::function<double(double, double)>& scalar,
                const IntegerFunction& integer) {
  dispatch(call.inputs[0]->data_type(), [&]<typename T>() {
    if constexpr (std::is_integral_v<T> && !std::is_same_v<T, bool>) {
      if (integer) return run_integer<T>(call, integer);
    }
    run_double(call, scalar);
  });
}

}  // namespace

std::vector<TensorType> infer_broadcast(const InferenceCall& call, DataType type) {
  SymbolicShape shape = call.input(0).shape;
  for (const TensorType& input : call.inputs.subspan(1)) shape = broadcast_shapes(shape, input.shape);
  return {{type, std::move(shape)}};
}

OperatorSchema unary_primitive(UnaryPrimitive description) {
  OperatorSchema schema;
  schema.name = description.name;
  schema.documentation = description.documentation;
  schema.operator_class = OperatorClass::elementwise;
  schema.traits = description.traits;
  schema.inputs = {{.name = "x", .types = description.types}};
  schema.outputs = {"y"};
  schema.infer = [boolean = description.makes_boolean](const InferenceCall& call) {
    return infer_broadcast(call, boolean ? DataType::boolean : call.input(0).data_type);
  };
  schema.scalar = [scalar = description.scalar](std::span<const double> x, const Attributes&) {
    return scalar(x[0]);
  };
  if (description.gradient) {
    schema.gradient = [gradient = description.gradient](const GradientCall& call) -> std::vector<Value*> {
      return {gradient(call.input(0), call.output(), call.gradient())};
    };
  } else {
    schema.gradient = [](const GradientCall&) -> std::vector<Value*> { return {nullptr}; };
  }
  const DataType type = description.types.contains(DataType::fp32) ? DataType::fp32 : DataType::boolean;
  schema.examples = {{.inputs = {{{3, 5}, description.low, description.high, type}}, .attributes = {}},
                     {.inputs = {{{}, description.low, description.high, type}}, .attributes = {}},
                     {.inputs = {{{1037}, description.low, description.high, type}}, .attributes = {}}};
  return schema;
}

OperatorSchema binary_primitive(const BinaryPrimitive& description) {
  OperatorSchema schema;
  schema.name = description.name;
  schema.documentation = description.documentation;
  schema.operator_class = OperatorClass::elementwise;
  schema.traits = description.traits;
  schema.broadcasts = true;
  schema.inputs = {{.name = "a", .types = description.types}, {.name = "b", .types = description.types}};
  schema.outputs = {"y"};
  schema.infer = [boolean = description.makes_boolean](const InferenceCall& call) {
    return infer_broadcast(call, boolean ? DataType::boolean : call.input(0).data_type);
  };
  schema.scalar = [scalar = description.scalar](std::span<const double> x, const Attributes&) {
    return scalar(x[0], x[1]);
  };
  schema.reference = [scalar = description.scalar, integer = description.integer](const ReferenceCall& call) {
    run_binary(call, scalar, integer);
  };
  schema.gradient = [gradient = description.gradient](const GradientCall& call) -> std::vector<Value*> {
    if (!gradient) return {nullptr, nullptr};
    const auto [a, b] = gradient(call.input(0), call.input(1), call.output(), call.gradient());
    return {a == nullptr ? nullptr : reduce_to_shape(a, call.input(0)->shape()),
            b == nullptr ? nullptr : reduce_to_shape(b, call.input(1)->shape())};
  };
  const double low = description.low;
  const double high = description.high;
  const DataType type = description.types.contains(DataType::fp32) ? DataType::fp32 : DataType::boolean;
  const auto example = [&](Shape a, Shape b, DataType t) {
    return OperatorExample{.inputs = {{std::move(a), low, high, t}, {std::move(b), low, high, t}},
                           .attributes = {}};
  };
  schema.examples = {example({4, 7}, {4, 7}, type), example({4, 7}, {7}, type), example({}, {3}, type),
                     example({5, 1, 3}, {2, 1}, type)};
  for (const DataType integer :
       {DataType::int32, DataType::int64, DataType::int16, DataType::uint16, DataType::uint32}) {
    if (description.types.contains(integer)) schema.examples.push_back(example({6}, {6}, integer));
  }
  return schema;
}

OperatorSchema unary_composite(UnaryComposite description) {
  OperatorSchema schema;
  schema.name = description.name;
  schema.documentation = description.documentation;
  schema.operator_class = OperatorClass::elementwise;
  schema.traits = description.traits;
  schema.inputs = {{.name = "x", .types = description.types}};
  schema.attributes = description.attributes;
  schema.outputs = {"y"};
  schema.infer = [](const InferenceCall& call) { return infer_broadcast(call, call.input(0).data_type); };
  schema.decompose = [formula = description.formula](const Node& node, std::span<Value* const> inputs) {
    return std::vector<Value*>{formula(inputs[0], node.attributes())};
  };
  if (description.gradient) {
    schema.gradient = [gradient = description.gradient](const GradientCall& call) -> std::vector<Value*> {
      return {gradient(call.input(0), call.output(), call.gradient(), call.node.attributes())};
    };
  }
  for (const Attributes& attributes : description.examples) {
    for (const Shape& shape : {Shape{3, 5}, Shape{}, Shape{1037}}) {
      schema.examples.push_back(
          {.inputs = {{shape, description.low, description.high}}, .attributes = attributes});
    }
  }
  return schema;
}

Value* select_or_zero(Value* condition, Value* when_true) {
  return select(condition, when_true, constant_like(when_true, 0));
}

Value* zero_or_select(Value* condition, Value* when_false) {
  return select(condition, constant_like(when_false, 0), when_false);
}

}  // namespace tessera::ops
