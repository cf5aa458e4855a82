#include "ops/contraction/attention_shapes.h"

#include <algorithm>

#include "ops/normalization/normalization.h"

namespace tessera::ops {

std::vector<AttributeSpecification> attention_attributes() {
  return {{"scale", AttributeKind::real, {}, "Multiplies each product of a query and a key."},
          {"causal", AttributeKind::boolean, false, "Query i sees only the keys j <= i."}};
}

std::vector<AttributeSpecification> dropout_attention_attributes() {
  std::vector<AttributeSpecification> attributes = attention_attributes();
  attributes.push_back({"rate", AttributeKind::real, {}, "Share of the weights that is dropped, in (0, 1)."});
  attributes.push_back({"stream", AttributeKind::integer, {}, "Of the random numbers."});
  return attributes;
}

InputSpecification dropout_counter() {
  return {.name = "counter", .types = {DataType::int64}, .type_variable = ""};
}

InputSpecification attention_key_lengths() {
  return {.name = "key_lengths",
          .types = {DataType::int32},
          .type_variable = "",
          .optional = true,
          .counts = {{.operand = "k", .axis = 2}}};
}

OperatorExample with_key_lengths(OperatorExample example, int64_t batch, int64_t keys) {
  example.inputs.push_back({{batch}, 1, static_cast<double>(keys), DataType::int32});
  return example;
}

OperatorExample with_key_heads(OperatorExample example, size_t k, int64_t key_heads) {
  for (const size_t input : {k, k + 1}) example.inputs[input].shape[1] = key_heads;
  return example;
}

std::vector<InputSpecification> attention_gradient_operands(const std::vector<InputSpecification>& last) {
  std::vector<InputSpecification> all{
      {.name = "output_gradient"},
      {.name = "q"},
      {.name = "k"},
      {.name = "v"},
      {.name = "y"},
      {.name = "log_sum", .types = {DataType::fp32, DataType::fp64}, .type_variable = "S"}};
  all.insert(all.end(), last.begin(), last.end());
  return all;
}

AttentionInputs attention_inputs(const InferenceCall& call, size_t q, size_t rest) {
  const bool drops = drops_weights(call.attributes);
  if (drops) {
    const double rate = call.attributes.real("rate");
    call.require(rate > 0 && rate < 1, "the rate must be in (0, 1), got " + std::to_string(rate));
    call.require(call.input(rest).shape == SymbolicShape{2}, "the counter must be [2]: seed and step");
  }
  const size_t bias = rest + (drops ? 1 : 0);
  return {call.input(q), call.input(q + 1), call.input(q + 2), call.operand(bias), call.operand(bias + 1)};
}

void check_attention(const InferenceCall& call, const AttentionInputs& inputs) {
  const auto& [q, k, v, bias, key_lengths] = inputs;
  call.require(q.rank() == 4 && k.rank() == 4 && v.rank() == 4, "q, k and v need four axes");
  call.require(k.shape[0] == v.shape[0] && k.shape[1] == v.shape[1], "k and v must agree in batch and heads");
  call.require(q.shape[0] == k.shape[0],
               "q has a batch of " + q.shape[0].to_string() + ", k of " + k.shape[0].to_string());
  call.require(
      heads_per_key_head(q.shape, k.shape).has_value(),
      q.shape[1].to_string() + " heads of q are no multiple of " + k.shape[1].to_string() + " heads of k");
  call.require(k.shape[3] == q.shape[3],
               "queries are " + q.shape[3].to_string() + " wide, keys " + k.shape[3].to_string());
  call.require(v.shape[2] == k.shape[2],
               k.shape[2].to_string() + " keys have " + v.shape[2].to_string() + " values");
  call.require(key_lengths == nullptr || key_lengths->shape == SymbolicShape{q.shape[0]},
               "key_lengths must have a number for each of the batch");
  if (bias == nullptr) return;
  call.require(bias->rank() == 4, "bias needs four axes");
  for (size_t axis = 0; axis < 2; ++axis) {
    call.require(bias->shape[axis] == q.shape[axis] || bias->shape[axis] == Dimension(1),
                 "bias must have batch and heads, or 1 in their place");
  }
  call.require(bias->shape[2] == q.shape[2] && bias->shape[3] == k.shape[2],
               "bias must have a number for each query and key");
}

std::optional<Dimension> heads_per_key_head(const SymbolicShape& q, const SymbolicShape& k) {
  return q[1] == k[1] ? std::optional(Dimension(1)) : q[1].divide_exactly(k[1]);
}

TensorType attention_result(const AttentionInputs& inputs) {
  const SymbolicShape& q = inputs.q.shape;
  return {inputs.q.data_type, {q[0], q[1], q[2], inputs.v.shape[3]}};
}

TensorType attention_log_sum(const AttentionInputs& inputs) {
  const SymbolicShape& q = inputs.q.shape;
  return {statistics_type(inputs.q.data_type), {q[0], q[1], q[2]}};
}

AttentionInputs attention_gradient_inputs(const InferenceCall& call) {
  const AttentionInputs inputs = attention_inputs(call, 1, 6);
  check_attention(call, inputs);
  const TensorType y = attention_result(inputs);
  const TensorType log_sum = attention_log_sum(inputs);
  call.require(call.input(0) == y && call.input(4) == y, "output_gradient and y must be " + to_string(y));
  call.require(call.input(5) == log_sum, "log_sum must be " + to_string(log_sum));
  return inputs;
}

double attention_flops(const Node& node, size_t q, size_t k, double width) {
  const Shape queries = node.input(q)->type().static_shape();
  const int64_t keys = node.input(k)->type().static_shape()[2];
  double pairs = static_cast<double>(queries[2]) * static_cast<double>(keys);
  if (node.attributes().boolean("causal")) {
    const int64_t rows = std::min(queries[2], keys);  // the others see all keys
    pairs -= static_cast<double>(rows) * static_cast<double>(keys);
    pairs += static_cast<double>(rows) * static_cast<double>(rows + 1) / 2;
  }
  return static_cast<double>(queries[0] * queries[1]) * pairs * (2 * width + 5);
}

AttentionRows::AttentionRows(const ReferenceCall& call, size_t q, size_t rest)
    : q_(call.inputs[q]->to_doubles()),
      k_(call.inputs[q + 1]->to_doubles()),
      v_(call.inputs[q + 2]->to_doubles()),
      batch_(call.inputs[q]->shape()[0]),
      heads_(call.inputs[q]->shape()[1]),
      key_heads_(call.inputs[q + 1]->shape()[1]),
      queries_(call.inputs[q]->shape()[2]),
      keys_(call.inputs[q + 1]->shape()[2]),
      width_(call.inputs[q]->shape()[3]),
      value_width_(call.inputs[q + 2]->shape()[3]),
      scale_(call.attributes().real("scale")),
      causal_(call.attributes().boolean("causal")) {
  if (drops_weights(call.attributes())) {
    const auto counter = call.inputs[rest]->data<int64_t>();
    rate_ = call.attributes().real("rate");
    random_.emplace(static_cast<uint64_t>(counter[0]),
                    step_stream(call.attributes().integer("stream"), counter[1]));
    ++rest;
  }
  if (const Tensor* lengths = call.operand(rest + 1)) {
    for (const int32_t length : lengths->data<int32_t>())
      key_lengths_.push_back(std::clamp<int64_t>(length, 0, keys_));
  }
  const Tensor* bias = call.operand(rest);
  if (bias == nullptr) return;
  bias_ = bias->to_doubles();
  bias_batch_ = bias->shape()[0];
  bias_heads_ = bias->shape()[1];
}

size_t AttentionRows::query(int64_t head, int64_t query) const {
  return static_cast<size_t>((head * queries_ + query) * width_);
}
size_t AttentionRows::key(int64_t head, int64_t key) const {
  return static_cast<size_t>((key_head(head) * keys_ + key) * width_);
}
size_t AttentionRows::value(int64_t head, int64_t key) const {
  return static_cast<size_t>((key_head(head) * keys_ + key) * value_width_);
}
size_t AttentionRows::result(int64_t head, int64_t query) const {
  return static_cast<size_t>((head * queries_ + query) * value_width_);
}

// Neighboring heads of queries share one of keys.
int64_t AttentionRows::key_head(int64_t head) const {
  return head / heads_ * key_heads_ + head % heads_ / (heads_ / key_heads_);
}

int64_t AttentionRows::visible(int64_t head, int64_t query) const {
  const int64_t length = key_lengths_.empty() ? keys_ : key_lengths_[static_cast<size_t>(head / heads_)];
  return causal_ ? std::min(query + 1, length) : length;
}

std::vector<double> AttentionRows::scores(int64_t head, int64_t query) const {
  std::vector<double> result;
  for (int64_t j = 0; j < visible(head, query); ++j) {
    result.push_back(scale_ * dot(q_, this->query(head, query), k_, key(head, j), width_));
    if (bias_.empty()) continue;
    const int64_t image = bias_batch_ == 1 ? 0 : head / heads_;
    const int64_t own = bias_heads_ == 1 ? 0 : head % heads_;
    result.back() += bias_[static_cast<size_t>(((image * bias_heads_ + own) * queries_ + query) * keys_ + j)];
  }
  return result;
}

double AttentionRows::dropped(int64_t head, int64_t query, int64_t key) const {
  if (!random_.has_value()) return 1;
  const float number = random_->uniform(static_cast<uint64_t>((head * queries_ + query) * keys_ + key));
  return number >= static_cast<float>(rate_) ? 1 / (1 - rate_) : 0;
}

double dot(const std::vector<double>& a, size_t first_a, const std::vector<double>& b, size_t first_b,
           int64_t count) {
  double sum = 0;
  for (int64_t i = 0; i < count; ++i) {
    sum += a[first_a + static_cast<size_t>(i)] * b[first_b + static_cast<size_t>(i)];
  }
  return sum;
}

}  // namespace tessera::ops
