#include <algorithm>
#include <cmath>
#include <limits>

#include "tessera/ops/attention_weights.h"

#include "ops/contraction/attention_shapes.h"
#include "ops/normalization/normalization.h"

namespace tessera::ops {
namespace {

struct QueryAndKey {
  Value* q = nullptr;
  Value* k = nullptr;
};

// A gradient g that flows into the log-sums, which know of no dropout, on to q and k. The derivatives of a
// log-sum by its scores are the weights P, so that dq = scale g (P k) and dk = scale P^T (g q): an attention
// that reads k in place of v, and a part of its gradient.
QueryAndKey through_log_sum(const GradientCall& call, const AttentionOptions& options) {
  if (call.gradient(1) == nullptr) return {};
  Value* q = call.input(0);
  Value* k = call.input(1);
  Value* score_gradient = as_column(multiply(call.gradient(1), *options.scale));
  const auto weighted = [&](Value* rows) {
    return cast(multiply(cast(rows, score_gradient->data_type()), score_gradient), q->data_type());
  };
  Value* mean_key = attention(q, k, k, options).y;
  return {weighted(mean_key), attention_gradient(weighted(q), q, k, k, mean_key, call.output(1), options).v};
}

// What follows a mask alone has no use for this, and it is removed.
Value* bias_gradient(const GradientCall& call, const AttentionOptions& options,
                     const AttentionDropout& dropout) {
  const AttentionRun run{.q = call.input(0),
                         .k = call.input(1),
                         .v = call.input(2),
                         .y = call.output(0),
                         .log_sum = call.output(1),
                         .options = options,
                         .dropout = dropout};
  const bool is_plain = call.gradient() != nullptr && call.gradient(1) == nullptr && dropout.rate == 0;
  return is_plain ? attention_bias_gradient(call.gradient(), run)
                  : written_bias_gradient(run, call.gradient(), call.gradient(1));
}

}  // namespace

std::vector<TensorType> infer_attention(const InferenceCall& call) {
  const AttentionInputs inputs = attention_inputs(call, 0, 3);
  check_attention(call, inputs);
  return {attention_result(inputs), attention_log_sum(inputs)};
}

std::vector<Value*> gradient_attention(const GradientCall& call) {
  const AttentionOptions options = attention_options(call.node, call.node.inputs(), 3);
  const AttentionDropout dropout = attention_dropout(call.node, call.node.inputs(), 3);
  const QueryAndKey rest = through_log_sum(call, options);
  AttentionGradients gradients{nullptr, nullptr, nullptr};
  if (call.gradient() != nullptr) {
    gradients = dropout_attention_gradient(call.gradient(), call.input(0), call.input(1), call.input(2),
                                           call.output(0), call.output(1), dropout, options);
  }
  std::vector<Value*> result{sum_of(gradients.q, rest.q), sum_of(gradients.k, rest.k), gradients.v};
  if (dropout.counter != nullptr) result.push_back(nullptr);
  result.push_back(options.bias == nullptr ? nullptr : bias_gradient(call, options, dropout));
  result.push_back(nullptr);  // of the lengths
  return call.of_inputs(result);
}

void reference_attention(const ReferenceCall& call) {
  const AttentionRows rows(call, 0, 3);
  for (int64_t head = 0; head < rows.heads(); ++head) {
    for (int64_t i = 0; i < rows.queries(); ++i) {
      std::vector<double> weights = rows.scores(head, i);
      double largest = -std::numeric_limits<double>::infinity();
      for (double score : weights) largest = std::max(largest, score);
      double sum = 0;
      for (double& weight : weights) {
        weight = std::exp(weight - largest);
        sum += weight;
      }
      for (int64_t c = 0; c < rows.value_width(); ++c) {
        double y = 0;
        for (size_t j = 0; j < weights.size(); ++j) {
          const size_t value = rows.value(head, static_cast<int64_t>(j)) + static_cast<size_t>(c);
          y += weights[j] * rows.dropped(head, i, static_cast<int64_t>(j)) * rows.v()[value];
        }
        call.outputs[0]->set(static_cast<int64_t>(rows.result(head, i)) + c, y / sum);
      }
      call.outputs[1]->set(head * rows.queries() + i, largest + std::log(sum));
    }
  }
}

double flops_of_attention(const Node& node) {
  const double widths =
      static_cast<double>(node.input(0)->type().static_shape()[3] + node.input(2)->type().static_shape()[3]);
  return attention_flops(node, 0, 1, widths);
}

namespace {

// k is [q[0], q[1], keys, q[3]], v has its own width.
OperatorExample example_attention(const Shape& q, int64_t keys, int64_t value_width, bool causal,
                                  const Shape& bias = {}) {
  OperatorExample result{
      .inputs = {{q, -2, 2}, {{q[0], q[1], keys, q[3]}, -2, 2}, {{q[0], q[1], keys, value_width}, -2, 2}},
      .attributes = {{"scale", 0.4}, {"causal", causal}}};
  if (!bias.empty()) result.inputs.push_back({bias, -2, 2});
  return result;
}

const OperatorRegistration kRegistration({
    .name = "attention",
    .documentation =
        "Scaled dot-product attention (Vaswani et al. 2017, arXiv:1706.03762): y = softmax(scale * q k^T + "
        "bias) v for each of the batch's heads. q: [batch, heads, queries, width], k: [batch, key heads, "
        "keys, width], v: [batch, key heads, keys, value width], bias, if given: [batch or 1, heads or 1, "
        "queries, keys]; y: [batch, heads, queries, value width]. heads is a multiple of key heads, each of "
        "which neighboring heads share (Ainslie et al. 2023, arXiv:2305.13245): head h reads that of number "
        "h / (heads / key heads). log_sum: the logarithm of each query's sum of "
        "exponentials, [batch, heads, queries], fp32 beside 16-bit operands. A bias of minus infinity hides "
        "a key; a query from which all are hidden gives NaN. key_lengths, if given, [batch]: queries of "
        "number n of the batch see only the keys j < key_lengths[n], of which there must be one at least and "
        "no more than there are; what a device makes of another length is not defined. "
        "What is hidden must be finite: kernels may multiply it by zero.",
    .operator_class = OperatorClass::contraction,
    .inputs = {{.name = "q"},
               {.name = "k"},
               {.name = "v"},
               {.name = "bias", .optional = true},
               attention_key_lengths()},
    .attributes = attention_attributes(),
    .outputs = {"y", "log_sum"},
    .infer = infer_attention,
    .gradient = gradient_attention,
    .flops = flops_of_attention,
    .reference = reference_attention,
    .examples = {example_attention({2, 3, 5, 4}, 7, 6, false), example_attention({1, 2, 6, 5}, 6, 3, true),
                 example_attention({1, 1, 9, 3}, 4, 3, true),
                 example_attention({2, 2, 3, 7}, 5, 1, true, {1, 2, 3, 5}),
                 example_attention({2, 1, 2, 4}, 33, 5, false, {2, 1, 2, 33}),
                 with_key_lengths(example_attention({3, 2, 4, 5}, 6, 3, false, {1, 2, 4, 6}), 3, 6),
                 with_key_lengths(example_attention({2, 1, 7, 4}, 5, 5, true, {2, 1, 7, 5}), 2, 5),
                 with_key_heads(example_attention({2, 6, 5, 4}, 7, 3, false), 1, 2),
                 with_key_heads(example_attention({1, 4, 5, 3}, 5, 3, true, {1, 4, 5, 5}), 1, 1),
                 with_key_heads(
                     with_key_lengths(example_attention({2, 4, 3, 4}, 6, 5, true, {2, 1, 3, 6}), 2, 6), 1, 2),
                 example_attention({1, 1, 1, 1}, 1, 1, false)},
});

}  // namespace
}  // namespace tessera::ops
