#include <cmath>

#include "ops/contraction/attention_shapes.h"

namespace tessera::ops {

std::vector<TensorType> infer_attention_gradient(const InferenceCall& call) {
  const AttentionInputs inputs = attention_gradient_inputs(call);
  return {inputs.q, inputs.k, inputs.v};
}

// With the weights P = exp(scores - log_sum), their dropout M and D = the sum of dy y along each row: dv = (M
// P)^T dy, dS = P (M (dy v^T) - D), dq = scale dS k, dk = scale dS^T q.
void reference_attention_gradient(const ReferenceCall& call) {
  const std::vector<double> dy = call.inputs[0]->to_doubles();
  const AttentionRows rows(call, 1, 6);
  const std::vector<double> y = call.inputs[4]->to_doubles();
  const std::vector<double> log_sum = call.inputs[5]->to_doubles();
  std::vector<double> dq(rows.q().size(), 0);
  std::vector<double> dk(rows.k().size(), 0);
  std::vector<double> dv(rows.v().size(), 0);
  for (int64_t head = 0; head < rows.heads(); ++head) {
    for (int64_t i = 0; i < rows.queries(); ++i) {
      const size_t query = rows.query(head, i);
      const size_t result = rows.result(head, i);
      const double mean = dot(dy, result, y, result, rows.value_width());
      const std::vector<double> scores = rows.scores(head, i);
      for (size_t j = 0; j < scores.size(); ++j) {
        const size_t key = rows.key(head, static_cast<int64_t>(j));
        const size_t value = rows.value(head, static_cast<int64_t>(j));
        const double weight = std::exp(scores[j] - log_sum[static_cast<size_t>(head * rows.queries() + i)]);
        const double dropped = rows.dropped(head, i, static_cast<int64_t>(j));
        const double weight_gradient = dropped * dot(dy, result, rows.v(), value, rows.value_width());
        const double score_gradient = rows.scale() * weight * (weight_gradient - mean);
        for (size_t c = 0; c < static_cast<size_t>(rows.value_width()); ++c)
          dv[value + c] += weight * dropped * dy[result + c];
        for (size_t c = 0; c < static_cast<size_t>(rows.width()); ++c) {
          dq[query + c] += score_gradient * rows.k()[key + c];
          dk[key + c] += score_gradient * rows.q()[query + c];
        }
      }
    }
  }
  const std::vector<double>* gradients[] = {&dq, &dk, &dv};
  for (size_t i = 0; i < 3; ++i) {
    Tensor& output = *call.outputs[i];
    output = Tensor::from_doubles(output.data_type(), output.shape(), *gradients[i]);
  }
}

double flops_of_attention_gradient(const Node& node) {
  const double width = static_cast<double>(node.input(1)->type().static_shape()[3]);
  const double value_width = static_cast<double>(node.input(3)->type().static_shape()[3]);
  return attention_flops(node, 1, 2, 3 * width + 2 * value_width);
}

namespace {

OperatorExample example_attention_gradient(const Shape& q, int64_t keys, int64_t value_width, bool causal,
                                           const Shape& bias = {}) {
  const Shape y{q[0], q[1], q[2], value_width};
  const Shape log_sum{q[0], q[1], q[2]};
  OperatorExample result{
      .inputs =
          {{y}, {q}, {{q[0], q[1], keys, q[3]}}, {{q[0], q[1], keys, value_width}}, {y}, {log_sum, 1, 3}},
      .attributes = {{"scale", 0.4}, {"causal", causal}}};
  if (!bias.empty()) result.inputs.push_back({bias});
  return result;
}

const OperatorRegistration kRegistration({
    .name = "attention_gradient",
    .documentation =
        "The gradients of attention to q, k and v, from that of y and from both of its results; "
        "the weights are recomputed from log_sum (Dao et al. 2022, arXiv:2205.14135). Those of hidden "
        "keys and their values are 0, and those that several heads of q share are sums over these.",
    .operator_class = OperatorClass::contraction,
    .inputs = attention_gradient_operands({{.name = "bias", .optional = true}, attention_key_lengths()}),
    .attributes = attention_attributes(),
    .outputs = {"q_gradient", "k_gradient", "v_gradient"},
    .infer = infer_attention_gradient,
    .flops = flops_of_attention_gradient,
    .reference = reference_attention_gradient,
    .examples = {example_attention_gradient({2, 3, 5, 4}, 7, 6, false),
                 example_attention_gradient({1, 2, 6, 5}, 6, 3, true),
                 example_attention_gradient({1, 1, 9, 3}, 4, 3, true),
                 example_attention_gradient({2, 2, 3, 7}, 5, 1, true, {1, 2, 3, 5}),
                 example_attention_gradient({2, 1, 2, 4}, 33, 5, false, {2, 1, 2, 33}),
                 with_key_lengths(example_attention_gradient({3, 2, 4, 5}, 6, 3, true, {1, 2, 4, 6}), 3, 6),
                 with_key_heads(example_attention_gradient({2, 6, 5, 4}, 7, 3, false), 2, 2),
                 with_key_heads(example_attention_gradient({1, 4, 5, 3}, 5, 3, true, {1, 4, 5, 5}), 2, 1)},
});

}  // namespace
}  // namespace tessera::ops
