// Operators on elements: in whichever order of axes their operands are there.
#include "onnx/graph_writer.h"

namespace tessera::onnx {
namespace {

std::vector<std::string> broadcast_operands(WriteCall& call, AxisOrder order) {
  std::vector<std::string> operands;
  for (size_t place = 0; place < call.node().inputs().size(); ++place)
    operands.push_back(call.broadcast_operand(place, order));
  return operands;
}

// What the format calls otherwise and is the same.
NodeWriter same(const std::string& name, const std::string& type) {
  return {name, [type](WriteCall& call) {
            const AxisOrder order = call.cheapest_order();
            call.result(type, broadcast_operands(call, order), {}, order);
          }};
}

// The same with a real attribute under another name.
NodeWriter with_real(const std::string& name, const std::string& type, const std::string& attribute,
                     const std::string& written) {
  return {name, [=](WriteCall& call) {
            const AxisOrder order = call.cheapest_order();
            call.result(type, broadcast_operands(call, order), {{written, call.attributes().real(attribute)}},
                        order);
          }};
}

// Of what `inner` makes.
NodeWriter nested(const std::string& name, const std::string& outer, const std::string& inner) {
  return {name, [=](WriteCall& call) {
            const AxisOrder order = call.cheapest_order();
            call.result(outer, {call.add(inner, broadcast_operands(call, order))}, {}, order);
          }};
}

void write_square(WriteCall& call) {
  const AxisOrder order = call.cheapest_order();
  const std::string x = call.operand(0, order);
  call.result("Mul", {x, x}, {}, order);
}

void write_silu(WriteCall& call) {
  const AxisOrder order = call.cheapest_order();
  const std::string x = call.operand(0, order);
  call.result("Mul", {x, call.add("Sigmoid", {x})}, {}, order);
}

void write_is_finite(WriteCall& call) {
  const AxisOrder order = call.cheapest_order();
  const std::string x = call.operand(0, order);
  call.result("Not", {call.add("Or", {call.add("IsNaN", {x}), call.add("IsInf", {x})})}, {}, order);
}

void write_gelu(WriteCall& call) {
  const AxisOrder order = call.cheapest_order();
  call.result("Gelu", {call.operand(0, order)},
              {{"approximate", call.attributes().boolean("approximate") ? "tanh" : "none"}}, order);
}

void write_clip(WriteCall& call, double low, double high) {
  const AxisOrder order = call.cheapest_order();
  const DataType type = call.node().input(0)->data_type();
  call.result("Clip",
              {call.operand(0, order), call.constant(Tensor::scalar(type, low)),
               call.constant(Tensor::scalar(type, high))},
              {}, order);
}

void write_hard_sigmoid(WriteCall& call) {
  const AxisOrder order = call.cheapest_order();
  call.result("HardSigmoid", {call.operand(0, order)},
              {{"alpha", call.attributes().real("alpha")}, {"beta", call.attributes().real("beta")}}, order);
}

// What an integer cannot hold becomes the nearest that it can; the format leaves open what becomes of it. A
// limit that the operand's own type does not hold is that of a type as wide or wider, and is left out.
std::string within_limits(WriteCall& call, const std::string& x, DataType from, DataType to) {
  const TypeTraits& limits = traits_of(to);
  const auto limit = [&](double value, double own) {
    const bool is_held = Tensor::scalar(from, value).at(0) == value && value != own;
    return is_held ? call.constant(Tensor::scalar(from, value)) : std::string();
  };
  const std::string low = limit(limits.lowest, traits_of(from).lowest);
  const std::string high = limit(limits.highest, traits_of(from).highest);
  if (low.empty() && high.empty()) return x;
  return call.add("Clip",
                  high.empty() ? std::vector<std::string>{x, low} : std::vector<std::string>{x, low, high});
}

void write_cast(WriteCall& call) {
  const AxisOrder order = call.cheapest_order();
  const DataType from = call.node().input(0)->data_type();
  const DataType to = call.attributes().data_type("type");
  const bool saturates = call.attributes().boolean("saturate");
  call.require(saturates || is_floating(to), "the format leaves open what becomes of integers out of range");
  const bool may_leave = !is_floating(to) && to != DataType::boolean && from != DataType::boolean;
  const std::string x = call.operand(0, order);
  Attributes attributes{{"to", to}};
  if (!saturates) attributes.set("saturate", 0);
  call.result("Cast", {may_leave ? within_limits(call, x, from, to) : x}, attributes, order);
}

const WriterRegistrations kRegistration{
    same("add", "Add"),
    same("subtract", "Sub"),
    same("multiply", "Mul"),
    same("divide", "Div"),
    same("maximum", "Max"),
    same("minimum", "Min"),
    same("power", "Pow"),
    same("equal", "Equal"),
    same("less", "Less"),
    same("less_equal", "LessOrEqual"),
    same("greater", "Greater"),
    same("greater_equal", "GreaterOrEqual"),
    nested("not_equal", "Not", "Equal"),
    same("logical_and", "And"),
    same("logical_or", "Or"),
    same("logical_not", "Not"),
    same("select", "Where"),
    same("negate", "Neg"),
    same("absolute", "Abs"),
    same("sign", "Sign"),
    same("exp", "Exp"),
    same("log", "Log"),
    same("sqrt", "Sqrt"),
    nested("rsqrt", "Reciprocal", "Sqrt"),
    same("reciprocal", "Reciprocal"),
    {"square", write_square},
    same("erf", "Erf"),
    same("tanh", "Tanh"),
    same("sin", "Sin"),
    same("cos", "Cos"),
    same("floor", "Floor"),
    same("ceil", "Ceil"),
    same("round", "Round"),
    {"is_finite", write_is_finite},
    same("sigmoid", "Sigmoid"),
    same("relu", "Relu"),
    {"relu6", [](WriteCall& call) { write_clip(call, 0, 6); }},
    {"clip",
     [](WriteCall& call) {
       write_clip(call, call.attributes().real("low"), call.attributes().real("high"));
     }},
    with_real("leaky_relu", "LeakyRelu", "slope", "alpha"),
    with_real("elu", "Elu", "alpha", "alpha"),
    {"gelu", write_gelu},
    {"silu", write_silu},
    same("softplus", "Softplus"),
    {"hard_sigmoid", write_hard_sigmoid},
    same("hard_swish", "HardSwish"),
    same("mish", "Mish"),
    {"cast", write_cast},
};

}  // namespace
}  // namespace tessera::onnx
