// Elementwise operators, whatever their number of inputs.
#include <algorithm>

#include "tessera/base/error.h"
#include "tessera/ops/functions.h"

#include "kernel_fuzz/problem_maker.h"

namespace tessera::testing {
namespace {

// `shape` without some leading axes, and with ones in place of some others.
Shape broadcast_from(Draw& draw, const Shape& shape) {
  if (draw.chance(50)) return shape;
  Shape result(shape.begin() + draw.below(static_cast<int64_t>(shape.size()) + 1), shape.end());
  for (int64_t& extent : result) {
    if (draw.chance(30)) extent = 1;
  }
  return result;
}

Attributes attributes_of(ProblemMaker& maker, const OperatorSchema& schema, const OperatorExample& example) {
  Attributes attributes = example.attributes;
  if (schema.name == "cast") {
    attributes.set("type", maker.type_of(kRealTypes));
    attributes.set("saturate", maker.draw().chance(70));
  }
  return attributes;
}

}  // namespace

void make_elementwise(ProblemMaker& maker, const OperatorSchema& schema) {
  Draw& draw = maker.draw();
  const OperatorExample& example = draw.pick(schema.examples);
  const Shape whole = maker.shape(0, 4);
  const bool broadcasts = schema.name != "binary_cross_entropy";
  const size_t most = example.inputs.size();
  const size_t full = static_cast<size_t>(draw.below(static_cast<int64_t>(most)));
  std::map<std::string, DataType> types;
  std::vector<Value*> inputs;
  for (size_t i = 0; i < most; ++i) {
    const InputSpecification& specification = schema.operand(i);
    DataType type = maker.type_of(specification.types);
    if (!specification.type_variable.empty())
      type = types.emplace(specification.type_variable, type).first->second;
    const ExampleInput& range = example.inputs[i];
    const Shape shape = i == full || !broadcasts ? whole : broadcast_from(draw, whole);
    const double wide = draw.chance(15) ? draw.uniform(1, 20) : 1;
    if (!inputs.empty() && inputs[0]->data_type() == type && inputs[0]->type().static_shape() == shape &&
        draw.chance(5)) {
      inputs.push_back(inputs[0]);  // twice the same
    } else if (draw.chance(10) && is_floating(type)) {
      inputs.push_back(maker.input(type, shape, -4, 4));  // beyond its domain, too
    } else {
      inputs.push_back(maker.input(type, shape, range.low * wide, range.high * wide));
    }
  }
  ops::apply(schema.name, inputs, attributes_of(maker, schema, example));
}

}  // namespace tessera::testing
