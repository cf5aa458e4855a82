// One function per operator: appends a node to the graph of its first input, at the insertion point, and
// returns its value. Shapes, rules and formulas are in the operators' own files (src/ops/) and in
// docs/operators.md. All throw Error(invalid_graph) naming the node, the inputs' types and the rule that was
// broken.
#pragma once

#include <limits>
#include <optional>
#include <string>
#include <vector>

#include "tessera/graph/graph.h"

namespace tessera::ops {

// The general form of all others; null stands for an optional input that is left out, `name` becomes the
// node's name. Throws Error(invalid_argument) when there is no input at all, and as Graph::add_node.
Node* apply(const std::string& operator_name, const std::vector<Value*>& inputs, Attributes attributes = {},
            const std::string& name = "");

// Sources.
Value* constant(Graph& graph, Tensor value);
// A scalar of the data type of `x`; broadcasts against it.
Value* constant_like(Value* x, double value);
Value* zeros_like(Value* x);
// counter: int64[2] = {seed, step}. `stream` tells users of one counter apart. fp32 unless told.
Value* random_uniform(Value* counter, SymbolicShape shape, int64_t stream,
                      DataType type = DataType::fp32);  // [0, 1)
Value* random_normal(Value* counter, SymbolicShape shape, int64_t stream, DataType type = DataType::fp32);
Value* iota(Graph& graph, SymbolicShape shape, int64_t axis, DataType type);
// The number of elements of the shape as a scalar: a constant, or an operator while the shape is symbolic.
Value* count_elements(Graph& graph, SymbolicShape shape, DataType type);

// Elementwise, with NumPy broadcasting.
Value* add(Value* a, Value* b);
Value* subtract(Value* a, Value* b);
Value* multiply(Value* a, Value* b);
Value* divide(Value* a, Value* b);
Value* maximum(Value* a, Value* b);
Value* minimum(Value* a, Value* b);
Value* power(Value* a, Value* b);
Value* add(Value* a, double b);
Value* subtract(double a, Value* b);
Value* multiply(Value* a, double b);
Value* divide(Value* a, double b);
Value* equal(Value* a, Value* b);  // comparisons make booleans
Value* not_equal(Value* a, Value* b);
Value* less(Value* a, Value* b);
Value* less_equal(Value* a, Value* b);
Value* greater(Value* a, Value* b);
Value* greater_equal(Value* a, Value* b);
Value* logical_and(Value* a, Value* b);
Value* logical_or(Value* a, Value* b);
Value* logical_not(Value* a);
Value* select(Value* condition, Value* when_true, Value* when_false);
Value* cast(Value* x, DataType type);  // x itself when it has the type already
Value* negate(Value* x);
Value* absolute(Value* x);
Value* sign(Value* x);
Value* exp(Value* x);
Value* log(Value* x);
Value* sqrt(Value* x);
Value* rsqrt(Value* x);
Value* reciprocal(Value* x);
Value* square(Value* x);
Value* erf(Value* x);
Value* tanh(Value* x);
Value* sin(Value* x);
Value* cos(Value* x);
Value* floor(Value* x);
Value* ceil(Value* x);
Value* round(Value* x);  // half to even
Value* is_finite(Value* x);
Value* sigmoid(Value* x);
Value* relu(Value* x);
Value* relu6(Value* x);
Value* leaky_relu(Value* x, double slope = 0.01);
Value* elu(Value* x, double alpha = 1.0);
Value* gelu(Value* x, bool approximate = false);  // tanh form when approximate
Value* silu(Value* x);
Value* softplus(Value* x);
Value* hard_sigmoid(Value* x);
Value* hard_swish(Value* x);
Value* mish(Value* x);
Value* clip(Value* x, double low, double high);
// Zeroes each element with probability `rate` and scales the rest by 1/(1-rate).
Value* dropout(Value* x, Value* counter, double rate, int64_t stream);

// Reductions. Empty axes mean all; negative axes count from the end.
struct ReduceOptions {
  std::vector<int64_t> axes = {};
  bool keep_dimensions = false;
};
Value* reduce_sum(Value* x, const ReduceOptions& options = {});
Value* reduce_mean(Value* x, const ReduceOptions& options = {});
Value* reduce_max(Value* x, const ReduceOptions& options = {});
Value* reduce_min(Value* x, const ReduceOptions& options = {});
Value* reduce_product(Value* x, const ReduceOptions& options = {});
Value* argmax(Value* x, int64_t axis = -1, bool keep_dimensions = false);  // int32, the first of equals

// Running sums along an axis; negative from the end.
struct CumulativeSumOptions {
  int64_t axis = -1;
  bool exclusive = false;  // an element is left out of its own sum
  bool reverse = false;    // from the last element on
};
Value* cumulative_sum(Value* x, const CumulativeSumOptions& options = {});

// [..., M, K] x [..., K, N]; leading axes broadcast; a transposed operand is stored the other way round.
struct MatmulOptions {
  bool transpose_a = false;
  bool transpose_b = false;
};
Value* matmul(Value* a, Value* b, const MatmulOptions& options = {});

// x: [N, spatial..., C], weight: [K, spatial..., C/groups], result: [N, spatial..., K]; one to three spatial
// axes.
struct ConvolutionOptions {
  std::vector<int64_t> strides = {};       // per spatial axis; empty: ones
  std::vector<int64_t> padding_low = {};   // per spatial axis; empty: zeros
  std::vector<int64_t> padding_high = {};  // empty: as padding_low
  std::vector<int64_t> dilations = {};     // empty: ones
  int64_t groups = 1;
};
Value* convolution(Value* x, Value* weight, const ConvolutionOptions& options = {});
// The gradient of convolution to x, whose shape is `input_shape`.
Value* convolution_data_gradient(Value* output_gradient, Value* weight, SymbolicShape input_shape,
                                 const ConvolutionOptions& options = {});
Value* convolution_weight_gradient(Value* x, Value* output_gradient, SymbolicShape weight_shape,
                                   const ConvolutionOptions& options = {});
// x: [N, spatial..., K], weight: [K, spatial..., C/groups] as of the convolution it transposes.
Value* transposed_convolution(Value* x, Value* weight, const ConvolutionOptions& options = {},
                              const std::vector<int64_t>& output_padding = {});

// Normalization over all axes but the last (channels). scale, bias, mean, variance: [C], at least fp32.
struct BatchNorm {
  Value* result;
  Value* mean;
  Value* variance;  // biased, of the batch
};
BatchNorm batch_norm_training(Value* x, Value* scale, Value* bias, double epsilon = 1e-5);
Value* batch_norm_inference(Value* x, Value* scale, Value* bias, Value* mean, Value* variance,
                            double epsilon = 1e-5);
// Over the last `axes` axes; scale and bias have their shape.
Value* layer_norm(Value* x, Value* scale, Value* bias, int64_t axes = 1, double epsilon = 1e-5);
// x: [N, spatial..., C], C in `groups` groups; instance norm is groups = C.
Value* group_norm(Value* x, Value* scale, Value* bias, int64_t groups, double epsilon = 1e-5);
// Gradients of the three, from that of the result and the statistics found on the way forward: mean and
// biased variance [C]; mean and inverse deviation, shaped as x without the normalized axes; the same as [N,
// groups].
struct NormGradients {
  Value* x;
  Value* scale;
  Value* bias;
};
NormGradients batch_norm_gradient(Value* output_gradient, Value* x, Value* scale, Value* mean,
                                  Value* variance, double epsilon = 1e-5);
NormGradients layer_norm_gradient(Value* output_gradient, Value* x, Value* scale, Value* mean,
                                  Value* inverse_deviation, int64_t axes = 1, bool centered = true);
NormGradients group_norm_gradient(Value* output_gradient, Value* x, Value* scale, Value* mean,
                                  Value* inverse_deviation, int64_t groups);
Value* softmax(Value* x, int64_t axis = -1);
Value* log_softmax(Value* x, int64_t axis = -1);

// Scaled dot-product attention. q: [batch, heads, queries, width], k: [batch, key heads, keys, width], v:
// [batch, key heads, keys, value width]; neighboring heads of q, heads / key heads of them, share those of k
// and v.
struct AttentionOptions {
  std::optional<double> scale = {};  // none: 1 / sqrt(width)
  bool causal = false;               // query i sees the keys j <= i
  Value* bias = nullptr;             // added to the scores: [batch or 1, heads or 1, queries, keys]
  Value* key_lengths = nullptr;      // int32 [batch]: so many keys are seen, the first ones, 1 at least
};
struct Attention {
  Value* y;        // [batch, heads, queries, value width]
  Value* log_sum;  // the logarithm of each query's sum of exponentials, fp32 beside 16-bit operands
};
Attention attention(Value* q, Value* k, Value* v, const AttentionOptions& options = {});
struct AttentionGradients {
  Value* q;
  Value* k;
  Value* v;
};
AttentionGradients attention_gradient(Value* output_gradient, Value* q, Value* k, Value* v, Value* y,
                                      Value* log_sum, const AttentionOptions& options = {});

// Pooling over the spatial axes of [N, spatial..., C].
struct PoolOptions {
  std::vector<int64_t> window = {};
  std::vector<int64_t> strides = {};       // empty: the window
  std::vector<int64_t> padding_low = {};   // empty: zeros
  std::vector<int64_t> padding_high = {};  // empty: as padding_low
  bool count_padding = true;  // average only: divide by the window's size, not by the elements inside
};
Value* max_pool(Value* x, const PoolOptions& options);
Value* average_pool(Value* x, const PoolOptions& options);
Value* global_average_pool(Value* x);  // [N, C]
// Gradients to an x of `input_shape`; position: the second output of max_pool.
Value* max_pool_gradient(Value* output_gradient, Value* position, SymbolicShape input_shape,
                         const PoolOptions& options);
Value* average_pool_gradient(Value* output_gradient, SymbolicShape input_shape, const PoolOptions& options);

// Losses, one number per row. logits: [rows, classes], labels: int32 or int64 [rows].
struct CrossEntropyOptions {
  double smoothing = 0;
  int64_t ignored_label = -100;  // rows with this label give 0 and no gradient
  int64_t classes = 0;           // the first so many columns of logits; 0: all
};
Value* cross_entropy(Value* logits, Value* labels, const CrossEntropyOptions& options = {});
// The gradient of cross_entropy to the logits; loss_gradient: [rows].
Value* cross_entropy_gradient(Value* logits, Value* labels, Value* loss_gradient,
                              const CrossEntropyOptions& options = {});
// Of logits of so many columns, how many are classes.
int64_t class_count(const Attributes& cross_entropy, int64_t columns);
// Elementwise on logits and targets in [0, 1] of the same shape.
Value* binary_cross_entropy(Value* logits, Value* targets);

// Indexing.
Value* gather(Value* table, Value* indices, int64_t axis = 0);  // embedding look-up
// result[indices[i], ...] += updates[i, ...], with `extent` rows.
Value* scatter_add(Value* indices, Value* updates, Dimension extent);
struct CombinedRows {
  Value* first;  // the indices, each at its first place; -1 at the others
  Value* sums;   // of the rows with that index; zeros at the others
};
// indices: [n], rows: [n, ...].
CombinedRows combine_rows(Value* indices, Value* rows);
// The table with rows[i] in place of its row indices[i], i counting up; negative indices leave theirs out.
Value* set_rows(Value* table, Value* indices, Value* rows);
Value* one_hot(Value* indices, int64_t depth, DataType type = DataType::fp32);
struct TopK {
  Value* values;
  Value* indices;  // int32
};
TopK top_k(Value* x, int64_t k);  // of the last axis, largest first, the first of equals first

// Communication: among the ranks of a group, which all run the same graph. One rank: the identity.
struct RankGroup {
  int64_t ranks = 1;
  std::string name = {};  // of CompileOptions::communicators; empty: all ranks
};
// Of each input by itself, all in one go; the reduction is "sum", "mean", "maximum" or "minimum".
std::vector<Value*> all_reduce(const std::vector<Value*>& inputs, const RankGroup& group,
                               const std::string& reduction = "sum");
Value* all_reduce(Value* x, const RankGroup& group, const std::string& reduction = "sum");
// [ranks * n, ...] -> [n, ...]: this rank's part of what is reduced, "sum" or "mean".
Value* reduce_scatter(Value* x, const RankGroup& group, const std::string& reduction = "sum");
Value* all_gather(Value* x, const RankGroup& group);  // [n, ...] -> [ranks * n, ...]
Value* broadcast(Value* x, const RankGroup& group, int64_t root = 0);
Value* reduce(Value* x, const RankGroup& group, int64_t root = 0);  // the sum there, zeros elsewhere

// Movement.
Value* reshape(Value* x, SymbolicShape shape);  // one extent may be -1: what remains
Value* transpose(Value* x, std::vector<int64_t> permutation);
Value* broadcast_to(Value* x, SymbolicShape shape);
Value* concat(const std::vector<Value*>& inputs, int64_t axis);
std::vector<Value*> split(Value* x, std::vector<int64_t> sizes, int64_t axis);
// Negative starts and limits count from the end; limits beyond the extent mean the extent.
inline constexpr int64_t kWholeAxis =
    std::numeric_limits<int64_t>::max();  // the limit of a whole symbolic axis
Value* slice(Value* x, std::vector<int64_t> starts, std::vector<int64_t> limits,
             std::vector<int64_t> strides = {});
// `interior` puts that many values between neighbors.
Value* pad(Value* x, std::vector<int64_t> low, std::vector<int64_t> high, double value = 0,
           std::vector<int64_t> interior = {});

// Sums a gradient that was broadcast back to the shape of `like`; the gradient itself when the shapes agree.
Value* reduce_to_shape(Value* gradient, const SymbolicShape& shape);

}  // namespace tessera::ops
