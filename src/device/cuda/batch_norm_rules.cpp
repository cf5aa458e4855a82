#include "device/cuda/batch_norm_rules.h"

#include "tessera/graph/operator.h"
#include "tessera/passes/batch_norm_expression.h"
#include "tessera/passes/fuse.h"

namespace tessera::cuda {
namespace {

// [N, ..., C] as [rows, C].
SymbolicShape rows_of(const Value* x) {
  const Shape shape = x->type().static_shape();
  return {element_count(Shape(shape.begin(), shape.end() - 1)), shape.back()};
}

Value* wide_rows(Value* x, DataType type) {
  return ops::cast(ops::reshape(x, rows_of(x)), type);
}

constexpr auto kOverRows = [] { return ops::ReduceOptions{.axes = {0}}; };

// One pass for both statistics: sums of x - s and of its square, where s, the first row, lies near enough to
// the mean that nothing cancels. A second pass applies them.
std::vector<Value*> training(const Node& node, const std::vector<Value*>& inputs) {
  Value* x = inputs[0];
  const DataType type = inputs[1]->data_type();
  const SymbolicShape rows = rows_of(x);
  Value* first = ops::slice(ops::reshape(x, rows), {0, 0}, {1, rows[1].value()});
  Value* shift = ops::cast(ops::reshape(first, {rows[1]}), type);
  Value* shifted = ops::subtract(wide_rows(x, type), shift);
  Value* mean_shifted = ops::reduce_mean(shifted, kOverRows());
  Value* mean_square = ops::reduce_mean(ops::square(shifted), kOverRows());
  Value* mean = ops::add(mean_shifted, shift);
  Value* variance = variance_of_means(mean_square, mean_shifted);
  Value* y = normalise_channels(x, mean, variance, inputs[1], inputs[2], node.attributes().real("epsilon"));
  return {y, mean, variance};
}

// A copy of the elementwise work behind a value, up to what is no such work: to read memory again is cheaper
// than to write the value for a second reader.
Value* made_again(Value* value) {
  const Node* node = value->producer();
  if (node == nullptr || node->schema().operator_class != OperatorClass::elementwise) return value;
  std::vector<Value*> inputs;
  for (Value* input : node->inputs()) inputs.push_back(made_again(input));
  return value->graph().add_node(node->operator_name(), inputs, node->attributes())->output(value->index());
}

// inputs: dy, x, scale, mean, variance. With n the normalised x: dbias = sum dy, dscale = sum dy n,
// dx = scale / deviation (dy - mean(dy) - n mean(dy n)).
std::vector<Value*> gradient(const Node& node, const std::vector<Value*>& inputs) {
  Value* dy = inputs[0];
  Value* x = inputs[1];
  const DataType type = inputs[2]->data_type();
  const double rows = static_cast<double>(rows_of(x)[0].value());
  Value* inverse = ops::rsqrt(ops::add(inputs[4], node.attributes().real("epsilon")));
  const auto along = [&](Value* channels) { return ops::broadcast_to(channels, x->shape()); };
  Value* slope = ops::cast(dy, type);
  Value* normalised = ops::multiply(ops::subtract(ops::cast(x, type), along(inputs[3])), along(inverse));
  Value* dbias = ops::reduce_sum(slope, over_all_but_channels(x));
  Value* dscale = ops::reduce_sum(ops::multiply(slope, normalised), over_all_but_channels(x));
  Value* factor = ops::multiply(inputs[2], inverse);
  Value* mean_slope = ops::multiply(dbias, 1 / rows);
  // n mean(dy n) as (x - mean) times one number per channel.
  Value* slant = ops::multiply(ops::multiply(dscale, 1 / rows), inverse);
  Value* centred = ops::subtract(ops::cast(x, type), along(inputs[3]));
  // The relu's mask before a gradient that goes to the shortcut as well is written for that.
  Value* again = is_output_or_update(node.input(0)) ? dy : made_again(dy);
  Value* rest = ops::subtract(ops::subtract(ops::cast(again, type), along(mean_slope)),
                              ops::multiply(centred, along(slant)));
  return {ops::cast(ops::multiply(rest, along(factor)), x->data_type()), dscale, dbias};
}

}  // namespace

const std::map<std::string, backend::GraphRule>& batch_norm_rules() {
  static const std::map<std::string, backend::GraphRule> rules{{"batch_norm_training", training},
                                                               {"batch_norm_gradient", gradient}};
  return rules;
}

}  // namespace tessera::cuda
