#include "tessera/device/common/attention_rules.h"

#include "tessera/graph/operator.h"
#include "tessera/ops/attention_weights.h"

namespace tessera::backend {
namespace {

ops::ReduceOptions along_rows() {
  return {.axes = {3}, .keep_dimensions = true};
}

// inputs: q, k, v, of dropout the counter, perhaps bias and lengths of keys; results: y, log_sum. The sums
// divide the result, which is smaller than the weights.
std::vector<Value*> forward(const Node& node, const std::vector<Value*>& inputs) {
  const ops::AttentionOptions options = ops::attention_options(node, inputs, 3);
  const ops::AttentionDropout dropout = ops::attention_dropout(node, inputs, 3);
  Value* products = ops::attention_products(inputs[0], inputs[1]);
  Value* largest = ops::reduce_max(ops::attention_scores(products, options), along_rows());
  Value* powers = ops::exp(ops::subtract(ops::attention_scores(products, options), largest));
  Value* sum = ops::reduce_sum(powers, along_rows());
  Value* dropped = ops::attention_dropped(powers, dropout);
  Value* y = ops::divide(ops::attention_sums(dropped, inputs[2]), sum);
  Value* log_sum = ops::add(largest, ops::log(sum));
  return {ops::cast(y, inputs[0]->data_type()), ops::reshape(log_sum, node.output(1)->shape())};
}

// inputs: dy, q, k, v, y, log_sum, and as forward(); results: dq, dk, dv. With the weights P, their dropout M
// and D = the sum of dy y along each row: dv = (M P)^T dy, dS = scale P (M (dy v^T) - D), dq = dS k, dk =
// dS^T q.
std::vector<Value*> backward(const Node& node, const std::vector<Value*>& inputs) {
  const ops::AttentionOptions options = ops::attention_options(node, inputs, 6);
  const ops::AttentionDropout dropout = ops::attention_dropout(node, inputs, 6);
  Value* products = ops::attention_products(inputs[1], inputs[2]);
  const DataType type = products->data_type();
  const auto wide = [&](size_t input) { return ops::cast(inputs[input], type); };
  const auto narrow = [&](Value* gradient) { return ops::cast(gradient, inputs[1]->data_type()); };
  Value* weights = ops::attention_weights(products, inputs[5], options);
  Value* mean = ops::reduce_sum(ops::multiply(wide(0), wide(4)), along_rows());
  Value* weight_gradient = ops::attention_dropped(ops::attention_products(inputs[0], inputs[3]), dropout);
  Value* score_gradient = ops::subtract(weight_gradient, mean);
  Value* dropped = ops::attention_dropped(weights, dropout);
  Value* ds = ops::multiply(ops::multiply(weights, score_gradient), *options.scale);
  return {narrow(ops::attention_sums(ds, inputs[2])),
          narrow(ops::attention_key_sums(ds, inputs[1], inputs[2])),
          narrow(ops::attention_key_sums(dropped, inputs[0], inputs[2]))};
}

// As the operator's own formula.
std::vector<Value*> bias_gradient(const Node& node, const std::vector<Value*>& inputs) {
  return node.schema().decompose(node, inputs);
}

}  // namespace

const std::map<std::string, GraphRule>& attention_rules() {
  static const std::map<std::string, GraphRule> rules{{"attention", forward},
                                                      {"attention_gradient", backward},
                                                      {"attention_bias_gradient", bias_gradient},
                                                      {"dropout_attention", forward},
                                                      {"dropout_attention_gradient", backward}};
  return rules;
}

}  // namespace tessera::backend
