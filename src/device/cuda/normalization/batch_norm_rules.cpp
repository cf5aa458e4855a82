#include "device/cuda/normalization/batch_norm_rules.h"

#include "tessera/graph/operator.h"
#include "tessera/passes/batch_norm_expression.h"
#include "tessera/passes/fuse.h"

namespace tessera::cuda {
namespace {

// One pass for both statistics; a second applies them.
std::vector<Value*> training(const Node& node, const std::vector<Value*>& inputs) {
  Value* x = inputs[0];
  const auto [mean, variance] = batch_statistics(x, inputs[1]->data_type());
  Value* y = normalize_channels(x, mean, variance, inputs[1], inputs[2], node.attributes().real("epsilon"));
  return {y, mean, variance};
}

// A copy of the elementwise work after a value, up to what is no such work: to read memory again is cheaper
// than to write the value for a second reader.
Value* recomputed(Value* value) {
  const Node* node = value->producer();
  if (node == nullptr || node->schema().operator_class != OperatorClass::elementwise) return value;
  std::vector<Value*> inputs;
  for (Value* input : node->inputs()) inputs.push_back(recomputed(input));
  return value->graph()
      .add_node(node->operator_name(), node->operands(inputs), node->attributes())
      ->output(value->index());
}

// inputs: dy, x, scale, mean, variance. With n the normalized x: dbias = sum dy, dscale = sum dy n,
// dx = scale / deviation (dy - mean(dy) - n mean(dy n)).
std::vector<Value*> gradient(const Node& node, const std::vector<Value*>& inputs) {
  Value* dy = inputs[0];
  Value* x = inputs[1];
  const DataType type = inputs[2]->data_type();
  const double share = 1 / static_cast<double>(rows_of_channels(x));
  Value* inverse = ops::rsqrt(ops::add(inputs[4], node.attributes().real("epsilon")));
  const auto along = [&](Value* channels) { return ops::broadcast_to(channels, x->shape()); };
  Value* wide_dy = ops::cast(dy, type);
  Value* normalized = ops::multiply(ops::subtract(ops::cast(x, type), along(inputs[3])), along(inverse));
  Value* dbias = ops::reduce_sum(wide_dy, over_all_but_channels(x));
  Value* dscale = ops::reduce_sum(ops::multiply(wide_dy, normalized), over_all_but_channels(x));
  Value* factor = ops::multiply(inputs[2], inverse);
  Value* mean_dy = ops::multiply(dbias, share);
  // n mean(dy n) as (x - mean) times one number per channel.
  Value* correlation = ops::multiply(ops::multiply(dscale, share), inverse);
  Value* centered = ops::subtract(ops::cast(x, type), along(inputs[3]));
  // The relu's mask before a gradient that goes to the residual as well is written for that.
  Value* other_dy = node.input(0)->is_output_or_update() ? dy : recomputed(dy);
  Value* rest = ops::subtract(ops::subtract(ops::cast(other_dy, type), along(mean_dy)),
                              ops::multiply(centered, along(correlation)));
  return {ops::cast(ops::multiply(rest, along(factor)), x->data_type()), dscale, dbias};
}

}  // namespace

// inputs: x, scale, bias, mean, variance.
std::vector<Value*> recomputed_batch_norm(const Node& node, const std::vector<Value*>& inputs) {
  return {normalize_channels(inputs[0], inputs[3], inputs[4], inputs[1], inputs[2],
                             node.attributes().real("epsilon"))};
}

const std::map<std::string, GraphRule>& batch_norm_rules() {
  static const std::map<std::string, GraphRule> rules{{"batch_norm_training", training},
                                                      {"batch_norm_gradient", gradient}};
  return rules;
}

}  // namespace tessera::cuda
