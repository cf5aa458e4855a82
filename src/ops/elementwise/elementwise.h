// Short ways to write the schemas of elementwise operators.
#pragma once

#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "tessera/graph/operator.h"
#include "tessera/ops/functions.h"

namespace tessera::ops {

// Those that operators of two elements know: all integers that int64 holds.
inline constexpr TypeSet kArithmeticTypes =
    kNumericTypes | TypeSet{DataType::int16, DataType::uint16, DataType::uint32};

// A primitive of one input: every device has one loop for it.
struct UnaryPrimitive {
  std::string name;
  std::string documentation;
  std::function<double(double)> scalar;
  // Gradient from (x, y, dy); empty when it is zero everywhere.
  std::function<Value*(Value* x, Value* y, Value* dy)> gradient = {};
  double low = -2;  // range of the examples
  double high = 2;
  TypeSet types = kFloatingTypes;
  bool makes_boolean = false;
  Traits traits = {};
};
OperatorSchema unary_primitive(UnaryPrimitive description);

// A primitive of two broadcast inputs.
struct BinaryPrimitive {
  std::string name;
  std::string documentation;
  std::function<double(double, double)> scalar;
  // The same in 64-bit integers, for integer types, which doubles would round: results wrap to the type.
  std::function<int64_t(int64_t, int64_t)> integer = {};
  // Gradients to a and b before the broadcast is summed back; empty when they are zero everywhere.
  std::function<std::pair<Value*, Value*>(Value* a, Value* b, Value* y, Value* dy)> gradient = {};
  double low = -2;
  double high = 2;
  TypeSet types = kArithmeticTypes;
  bool makes_boolean = false;
  Traits traits = {};
};
OperatorSchema binary_primitive(const BinaryPrimitive& description);

// A composite of one input, in terms of primitives; gradient and reference follow from the formula.
struct UnaryComposite {
  std::string name;
  std::string documentation;
  std::vector<AttributeSpecification> attributes = {};
  std::function<Value*(Value* x, const Attributes& attributes)> formula;
  // Only where something better than the formula's own gradient exists.
  std::function<Value*(Value* x, Value* y, Value* dy, const Attributes& attributes)> gradient = {};
  double low = -3;
  double high = 3;
  TypeSet types = kFloatingTypes;
  std::vector<Attributes> examples = {{}};  // attributes to try
  Traits traits = {};
};
OperatorSchema unary_composite(UnaryComposite description);

// The shape rule of all elementwise operators: the broadcast of all inputs, with the given type.
std::vector<TensorType> infer_broadcast(const InferenceCall& call, DataType type);

// `when_true` where the condition holds, 0 elsewhere; and the other way round.
Value* select_or_zero(Value* condition, Value* when_true);
Value* zero_or_select(Value* condition, Value* when_false);

}  // namespace tessera::ops
