#include "ops/contraction/attention_shapes.h"

#include <algorithm>

#include "ops/normalization/normalization.h"

namespace tessera::ops {

std::vector<AttributeSpecification> attention_attributes() {
  return {{"scale", AttributeKind::real, {}, "Multiplies each product of a query and a key."},
          {"causal", AttributeKind::boolean, false, "Query i sees only the keys j <= i."}};
}

AttentionInputs attention_inputs(const InferenceCall& call, size_t q, size_t bias) {
  return {call.input(q), call.input(q + 1), call.input(q + 2), call.operand(bias)};
}

void check_attention(const InferenceCall& call, const AttentionInputs& inputs) {
  const auto& [q, k, v, bias] = inputs;
  call.require(q.rank() == 4 && k.rank() == 4 && v.rank() == 4, "q, k and v need four axes");
  call.require(k.shape[0] == q.shape[0] && v.shape[0] == q.shape[0] && k.shape[1] == q.shape[1] &&
                   v.shape[1] == q.shape[1],
               "q, k and v must agree in batch and heads");
  call.require(k.shape[3] == q.shape[3],
               "queries are " + q.shape[3].to_string() + " wide, keys " + k.shape[3].to_string());
  call.require(v.shape[2] == k.shape[2],
               k.shape[2].to_string() + " keys have " + v.shape[2].to_string() + " values");
  if (bias == nullptr) return;
  call.require(bias->rank() == 4, "bias needs four axes");
  for (size_t axis = 0; axis < 2; ++axis) {
    call.require(bias->shape[axis] == q.shape[axis] || bias->shape[axis] == Dimension(1),
                 "bias must have batch and heads, or 1 in their place");
  }
  call.require(bias->shape[2] == q.shape[2] && bias->shape[3] == k.shape[2],
               "bias must have a number for each query and key");
}

TensorType attention_result(const AttentionInputs& inputs) {
  const SymbolicShape& q = inputs.q.shape;
  return {inputs.q.data_type, {q[0], q[1], q[2], inputs.v.shape[3]}};
}

TensorType attention_log_sum(const AttentionInputs& inputs) {
  const SymbolicShape& q = inputs.q.shape;
  return {statistics_type(inputs.q.data_type), {q[0], q[1], q[2]}};
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

AttentionRows::AttentionRows(const Tensor& q, const Tensor& k, const Tensor& v, const Tensor* bias,
                             const Attributes& attributes)
    : q_(q.to_doubles()),
      k_(k.to_doubles()),
      v_(v.to_doubles()),
      batch_(q.shape()[0]),
      heads_(q.shape()[1]),
      queries_(q.shape()[2]),
      keys_(k.shape()[2]),
      width_(q.shape()[3]),
      value_width_(v.shape()[3]),
      scale_(attributes.real("scale")),
      causal_(attributes.boolean("causal")) {
  if (bias == nullptr) return;
  bias_ = bias->to_doubles();
  bias_batch_ = bias->shape()[0];
  bias_heads_ = bias->shape()[1];
}

size_t AttentionRows::query(int64_t head, int64_t query) const {
  return static_cast<size_t>((head * queries_ + query) * width_);
}
size_t AttentionRows::key(int64_t head, int64_t key) const {
  return static_cast<size_t>((head * keys_ + key) * width_);
}
size_t AttentionRows::value(int64_t head, int64_t key) const {
  return static_cast<size_t>((head * keys_ + key) * value_width_);
}
size_t AttentionRows::result(int64_t head, int64_t query) const {
  return static_cast<size_t>((head * queries_ + query) * value_width_);
}

std::vector<double> AttentionRows::scores(int64_t head, int64_t query) const {
  std::vector<double> result;
  for (int64_t j = 0; j < visible(query); ++j) {
    result.push_back(scale_ * dot(q_, this->query(head, query), k_, key(head, j), width_));
    if (bias_.empty()) continue;
    const int64_t image = bias_batch_ == 1 ? 0 : head / heads_;
    const int64_t own = bias_heads_ == 1 ? 0 : head % heads_;
    result.back() += bias_[static_cast<size_t>(((image * bias_heads_ + own) * queries_ + query) * keys_ + j)];
  }
  return result;
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
