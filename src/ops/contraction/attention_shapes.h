// What attention and its gradient share: attributes, shape rules, and the reference loops' view of a row.
#pragma once

#include <optional>
#include <vector>

#include "tessera/base/random.h"
#include "tessera/graph/operator.h"
#include "tessera/ops/dropout_attention.h"
#include "tessera/ops/functions.h"

namespace tessera::ops {

// As in a schema; of attention with dropout the second.
std::vector<AttributeSpecification> attention_attributes();
std::vector<AttributeSpecification> dropout_attention_attributes();
inline bool drops_weights(const Attributes& attributes) {
  return attributes.contains("rate");
}
InputSpecification dropout_counter();
InputSpecification attention_key_lengths();
// The example with lengths, for which it has all operands before them.
OperatorExample with_key_lengths(OperatorExample example, int64_t batch, int64_t keys);
// The example with so many heads of keys and values, whose inputs number `k` and the next are k and v.
OperatorExample with_key_heads(OperatorExample example, size_t k, int64_t key_heads);
// What gradients read: that of y, what attention read and made, and then `last`: counter, bias and lengths.
std::vector<InputSpecification> attention_gradient_operands(const std::vector<InputSpecification>& last);
// Attention and its gradient: rules and loops. With dropout the counter stands before bias and lengths.
std::vector<TensorType> infer_attention(const InferenceCall& call);
std::vector<Value*> gradient_attention(const GradientCall& call);
double flops_of_attention(const Node& node);
void reference_attention(const ReferenceCall& call);
std::vector<TensorType> infer_attention_gradient(const InferenceCall& call);
double flops_of_attention_gradient(const Node& node);
void reference_attention_gradient(const ReferenceCall& call);
// Rules: how q, k, v and, where there are any, bias and lengths of keys belong together.
struct AttentionInputs {
  const TensorType& q;
  const TensorType& k;
  const TensorType& v;
  const TensorType* bias;
  const TensorType* key_lengths;
};
// The inputs from `q` on, and bias and lengths, which are from number `rest` on, or after a counter of that
// number.
AttentionInputs attention_inputs(const InferenceCall& call, size_t q, size_t rest);
void check_attention(const InferenceCall& call, const AttentionInputs& inputs);
// How many heads of queries see the same keys; nothing where those of q are no multiple of those of k.
std::optional<Dimension> heads_per_key_head(const SymbolicShape& q, const SymbolicShape& k);
TensorType attention_result(const AttentionInputs& inputs);
TensorType attention_log_sum(const AttentionInputs& inputs);
// Of a gradient, whose inputs are that of y, what attention read and, from 4 on, what it made. Checks all.
AttentionInputs attention_gradient_inputs(const InferenceCall& call);

// Of attention that ran: what a gradient of its bias reads.
struct AttentionRun {
  Value* q;
  Value* k;
  Value* v;
  Value* y;
  Value* log_sum;
  AttentionOptions options;
  AttentionDropout dropout;
};
// The gradient of the bias from that of y, of attention without dropout: the operator of that name.
Value* attention_bias_gradient(Value* output_gradient, const AttentionRun& run);
// The same written out, and with dropout, from the gradients of y and of log_sum, of which one may be null.
Value* written_bias_gradient(const AttentionRun& run, Value* output_gradient, Value* log_sum_gradient);
// One number for each query, to be multiplied by what each has for its keys or its width.
Value* as_column(Value* rows);

// FLOPs of products over `width` elements for each pair of a query and a key that it sees, and of the
// exponential of each.
double attention_flops(const Node& node, size_t q, size_t k, double width);

// Extents and places of elements, for loops over host tensors.
class AttentionRows {
 public:
  // Of the inputs from `q` on, as attention_inputs().
  AttentionRows(const ReferenceCall& call, size_t q, size_t rest);

  int64_t heads() const { return batch_ * heads_; }  // of the queries of all of the batch
  int64_t queries() const { return queries_; }
  int64_t width() const { return width_; }
  int64_t value_width() const { return value_width_; }
  double scale() const { return scale_; }
  // How many keys, from the first, the query sees.
  int64_t visible(int64_t head, int64_t query) const;
  // The first element of a row that the head sees.
  size_t query(int64_t head, int64_t query) const;
  size_t key(int64_t head, int64_t key) const;
  size_t value(int64_t head, int64_t key) const;
  size_t result(int64_t head, int64_t query) const;
  // Scaled and biased, of all visible keys.
  std::vector<double> scores(int64_t head, int64_t query) const;
  // By what dropout multiplies a weight; 1 without.
  double dropped(int64_t head, int64_t query, int64_t key) const;

  const std::vector<double>& q() const { return q_; }
  const std::vector<double>& k() const { return k_; }
  const std::vector<double>& v() const { return v_; }

 private:
  int64_t key_head(int64_t head) const;

  std::vector<double> q_;
  std::vector<double> k_;
  std::vector<double> v_;
  std::vector<double> bias_;
  std::vector<int64_t> key_lengths_;
  int64_t batch_;
  int64_t heads_;
  int64_t key_heads_;
  int64_t queries_;
  int64_t keys_;
  int64_t width_;
  int64_t value_width_;
  int64_t bias_batch_ = 1;
  int64_t bias_heads_ = 1;
  double scale_;
  bool causal_;
  double rate_ = 0;
  std::optional<Random> random_;  // of dropout
};

// Sums from `a` and `b` on, of `count` products.
double dot(const std::vector<double>& a, size_t first_a, const std::vector<double>& b, size_t first_b,
           int64_t count);

}  // namespace tessera::ops
