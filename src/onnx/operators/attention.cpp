// Attention, RotaryEmbedding.
#include <cmath>

#include "tessera/ops/attention_weights.h"

#include "onnx/lowering.h"
#include "onnx/types.h"

namespace tessera::onnx {
namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();

// [batch, length, heads * width] as [batch, heads, length, width].
Value* split_heads(const program::Call& call, Value* x, int64_t heads) {
  const Shape shape = shape_of(x);
  if (shape.size() == 4) return x;
  call.require(shape.size() == 3 && heads > 0 && shape[2] % heads == 0,
               "its operands are to be [batch, length, heads * width]");
  return transpose(reshape(x, {shape[0], shape[1], heads, shape[2] / heads}), {0, 2, 1, 3});
}

Value* join_heads(Value* x) {
  const Shape shape = shape_of(x);
  return reshape(transpose(x, {0, 2, 1, 3}), {shape[0], shape[2], shape[1] * shape[3]});
}

void require_shared_heads(const program::Call& call, Value* q, Value* k, Value* v) {
  const int64_t heads = extent(k, 1);
  call.require(extent(v, 1) == heads, "its keys and values differ in heads");
  call.require(extent(q, 1) == heads || (heads > 0 && extent(q, 1) % heads == 0),
               "the heads of its queries are no multiple of those of its keys");
}

struct Scores {
  int64_t queries;
  int64_t keys;
  int64_t past;
  DataType type;
};

// 0 where it holds, minus infinity elsewhere.
Value* allowed(Value* condition, DataType type) {
  Graph& graph = condition->graph();
  return ops::select(condition, number(graph, type, 0), number(graph, type, -kInfinity));
}

Value* plus(Value* bias, Value* more) {
  return bias == nullptr ? more : ops::add(bias, more);
}

// What is added to the scores: the mask, filled up to all keys, causality, and the rows' lengths.
Value* score_bias(LowerCall& call, const Scores& scores) {
  Graph& graph = call.graph();
  Value* bias = nullptr;
  if (call.has(3)) {
    Value* mask = call.operand(3);
    if (mask->data_type() == DataType::boolean) mask = allowed(mask, scores.type);
    mask = ops::cast(mask, scores.type);
    std::vector<int64_t> none(static_cast<size_t>(mask->type().rank()), 0);
    std::vector<int64_t> more = none;
    more.back() = scores.keys - extent(mask, mask->type().rank() - 1);
    call.require(more.back() >= 0 || more.back() == 1 - scores.keys,
                 "its mask is for more keys than there are");
    bias = more.back() > 0 ? ops::pad(mask, none, more, -kInfinity) : mask;
  }
  const Shape square{scores.queries, scores.keys};
  if (call.integer("is_causal", 0) != 0) {
    Value* last =
        ops::add(counted(graph, square, 0), number(graph, DataType::int64, static_cast<double>(scores.past)));
    bias = plus(bias, allowed(ops::less_equal(counted(graph, square, 1), last), scores.type));
  }
  if (call.has(6)) {
    Value* lengths = ops::cast(call.operand(6), DataType::int64);
    Value* key = counted(graph, {1, 1, 1, scores.keys}, 3);
    bias = plus(bias, allowed(ops::less(key, unsqueeze(lengths, {1, 2, 3})), scores.type));
  }
  return bias;
}

// What broadcasts to the scores [batch, heads, queries, keys], as the operator takes it.
Value* whole_bias(const program::Call& call, Value* bias, const Scores& scores) {
  if (bias == nullptr) return nullptr;
  Shape shape = shape_of(bias);
  call.require(shape.size() <= 4, "its mask has more axes than its scores");
  shape.insert(shape.begin(), 4 - shape.size(), 1);
  return broadcast(reshape(bias, shape), {shape[0], shape[1], scores.queries, scores.keys});
}

Value* soft_capped(Value* x, double cap) {
  return cap > 0 ? ops::multiply(ops::tanh(ops::multiply(x, 1 / cap)), cap) : x;
}

void lower_attention(LowerCall& call) {
  const DataType type = call.type(0).data_type;
  const bool is_flat = call.type(0).rank() == 3;
  Value* q = split_heads(call, call.operand(0), call.integer("q_num_heads", 0));
  Value* k = split_heads(call, call.operand(1), call.integer("kv_num_heads", 0));
  Value* v = split_heads(call, call.operand(2), call.integer("kv_num_heads", 0));
  const int64_t past = call.has(4) ? extent(call.operand(4), 2) : 0;
  if (call.has(4)) k = ops::concat({call.operand(4), k}, 2);
  if (call.has(5)) v = ops::concat({call.operand(5), v}, 2);
  call.result(1, k);
  call.result(2, v);
  require_shared_heads(call, q, k, v);
  // 16-bit types are computed in fp32 and rounded at the end.
  const DataType computing = is_half(type) ? DataType::fp32 : type;
  const double scale = call.real("scale", 1 / std::sqrt(static_cast<double>(extent(q, 3))));
  const Scores scores{extent(q, 2), extent(k, 2), past, computing};
  Value* bias = score_bias(call, scores);
  const auto give = [&](Value* y) {
    y = ops::cast(y, type);
    call.result(0, is_flat ? join_heads(y) : y);
  };
  if (call.real("softcap", 0) <= 0 && !call.wants(3)) {
    give(ops::attention(ops::cast(q, computing), ops::cast(k, computing), ops::cast(v, computing),
                        {.scale = scale, .bias = whole_bias(call, bias, scores)})
             .y);
    return;
  }
  Value* raw = ops::multiply(ops::attention_products(q, k), scale);
  Value* capped = soft_capped(raw, call.real("softcap", 0));
  Value* biased = bias == nullptr ? capped : ops::add(capped, bias);
  Value* weights = ops::softmax(biased, -1);
  give(ops::attention_sums(weights, v));
  const int64_t mode = call.integer("qk_matmul_output_mode", 0);
  Value* shown = mode == 2 ? biased : mode == 3 ? weights : capped;
  if (call.wants(3)) call.result(3, ops::cast(shown, type));
}

// Su et al. 2021, "RoFormer": pairs of elements are rotated by an angle of their position.
void lower_rotary_embedding(LowerCall& call) {
  Value* x = call.operand(0);
  const bool is_flat = x->type().rank() == 3;
  x = split_heads(call, x, call.integer("num_heads", 0));  // [batch, heads, length, width]
  const Shape shape = shape_of(x);
  const int64_t given = call.integer("rotary_embedding_dim", 0);
  const int64_t rotated = given == 0 ? shape[3] : given;
  call.require(rotated > 0 && rotated <= shape[3] && rotated % 2 == 0,
               "rotary_embedding_dim is to be even and within the heads");
  const auto angles = [&](size_t operand) {
    Value* cache = call.operand(operand);
    if (call.has(3)) cache = ops::gather(cache, ops::cast(call.operand(3), DataType::int64), 0);
    return unsqueeze(cache, {1});  // [batch, 1, length, rotated / 2]
  };
  Value* cosine = angles(1);
  Value* sine = angles(2);
  Value* rotated_part = slice_axis(x, 3, 0, rotated);
  const bool interleaved = call.integer("interleaved", 0) != 0;
  Value* first = nullptr;
  Value* second = nullptr;
  if (interleaved) {
    Value* pairs = reshape(rotated_part, {shape[0], shape[1], shape[2], rotated / 2, 2});
    first = squeeze(slice_axis(pairs, 4, 0, 1), {4});
    second = squeeze(slice_axis(pairs, 4, 1, 2), {4});
  } else {
    first = slice_axis(rotated_part, 3, 0, rotated / 2);
    second = slice_axis(rotated_part, 3, rotated / 2, rotated);
  }
  Value* real = ops::subtract(ops::multiply(cosine, first), ops::multiply(sine, second));
  Value* imaginary = ops::add(ops::multiply(sine, first), ops::multiply(cosine, second));
  Value* y = interleaved ? reshape(ops::concat({unsqueeze(real, {4}), unsqueeze(imaginary, {4})}, 4),
                                   {shape[0], shape[1], shape[2], rotated})
                         : ops::concat({real, imaginary}, 3);
  if (rotated < shape[3]) y = ops::concat({y, slice_axis(x, 3, rotated, shape[3])}, 3);
  call.result(0, is_flat ? join_heads(y) : y);
}

// Bodies change the scores before the softmax, and what it makes of them.
void lower_flex_attention(LowerCall& call) {
  const DataType type = call.type(0).data_type;
  Value* q = call.operand(0);
  Value* k = call.operand(1);
  Value* v = call.operand(2);
  call.require(q->type().rank() == 4 && k->type().rank() == 4 && v->type().rank() == 4,
               "its operands are to be [batch, heads, length, width]");
  require_shared_heads(call, q, k, v);
  DataType computing = is_half(type) ? DataType::fp32 : type;
  if (call.integer("softmax_precision", 0) != 0) computing = data_type_of(call.integer("softmax_precision"));
  const double scale = call.real("scale", 1 / std::sqrt(static_cast<double>(extent(q, 3))));
  Value* products = ops::attention_products(ops::cast(q, computing), ops::cast(k, computing));
  Value* scores = ops::multiply(ops::cast(products, computing), scale);
  const auto changed = [&](const char* body, Value* value) {
    return call.has_argument(body) ? call.inline_body(call.body(body), {value}).at(0) : value;
  };
  Value* weights = changed("prob_mod", ops::softmax(changed("score_mod", scores), -1));
  call.result(0, ops::cast(ops::attention_sums(weights, v), type));
}

const RuleRegistrations kRegistration{
    {.name = "FlexAttention", .domain = "ai.onnx.preview", .lower = lower_flex_attention},
    {.name = "Attention", .lower = lower_attention},
    {.name = "RotaryEmbedding", .lower = lower_rotary_embedding},
};

}  // namespace
}  // namespace tessera::onnx
