// Attention, RotaryEmbedding.
#include <cmath>

#include "tessera/ops/rotary_embedding.h"

#include "onnx/lowering.h"
#include "onnx/types.h"

namespace tessera::onnx {
namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();

// [batch, length, heads * width] as [batch, length, heads, width].
Value* heads_side_by_side(const program::Call& call, Value* x, int64_t heads) {
  const Shape shape = shape_of(x);
  call.require(shape.size() == 3 && heads > 0 && shape[2] % heads == 0,
               "its operands are to be [batch, length, heads * width]");
  return reshape(x, {shape[0], shape[1], heads, shape[2] / heads});
}

// The same as [batch, heads, length, width].
Value* split_heads(const program::Call& call, Value* x, int64_t heads) {
  if (x->type().rank() == 4) return x;
  return transpose(heads_side_by_side(call, x, heads), {0, 2, 1, 3});
}

Value* join_heads(Value* x) {
  const Shape shape = shape_of(x);
  return reshape(transpose(x, {0, 2, 1, 3}), {shape[0], shape[2], shape[1] * shape[3]});
}

// Each head so many times in a row.
Value* repeat_heads(Value* x, int64_t times) {
  if (times == 1) return x;
  const Shape s = shape_of(x);
  return reshape(broadcast(unsqueeze(x, {2}), {s[0], s[1], times, s[2], s[3]}),
                 {s[0], s[1] * times, s[2], s[3]});
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
  const int64_t times = extent(q, 1) / std::max<int64_t>(1, extent(k, 1));
  call.require(times * extent(k, 1) == extent(q, 1),
               "the heads of its queries are no multiple of those of its keys");
  // 16-bit types are computed in fp32 and rounded at the end.
  const DataType computing = is_half(type) ? DataType::fp32 : type;
  const double scale = call.real("scale", 1 / std::sqrt(static_cast<double>(extent(q, 3))));
  Value* raw = ops::multiply(ops::matmul(ops::cast(q, computing),
                                         ops::cast(repeat_heads(k, times), computing), {.transpose_b = true}),
                             scale);
  Value* capped = soft_capped(raw, call.real("softcap", 0));
  Value* bias = score_bias(call, {extent(q, 2), extent(k, 2), past, computing});
  Value* biased = bias == nullptr ? capped : ops::add(capped, bias);
  Value* weights = ops::softmax(biased, -1);
  Value* y = ops::matmul(weights, ops::cast(repeat_heads(v, times), computing));
  y = ops::cast(y, type);
  call.result(0, is_flat ? join_heads(y) : y);
  const int64_t mode = call.integer("qk_matmul_output_mode", 0);
  Value* shown = mode == 2 ? biased : mode == 3 ? weights : capped;
  if (call.wants(3)) call.result(3, ops::cast(shown, type));
}

// Of the numbers of a head the first ones alone may be rotated.
void lower_rotary_embedding(LowerCall& call) {
  Value* given = call.operand(0);
  const bool is_flat = given->type().rank() == 3;
  Value* x = is_flat ? heads_side_by_side(call, given, call.integer("num_heads", 0)) : given;
  const int64_t width = extent(x, 3);
  const int64_t asked = call.integer("rotary_embedding_dim", 0);
  const int64_t rotated = asked == 0 ? width : asked;
  call.require(rotated > 0 && rotated <= width && rotated % 2 == 0,
               "rotary_embedding_dim is to be even and within the heads");
  const auto angles = [&](size_t operand) {
    Value* cache = call.operand(operand);
    if (call.has(3)) cache = ops::gather(cache, ops::cast(call.operand(3), DataType::int64), 0);
    return is_half(cache->data_type()) ? ops::cast(cache, DataType::fp32) : cache;
  };
  Value* y =
      ops::rotary_embedding(slice_axis(x, 3, 0, rotated), angles(1), angles(2),
                            {.axis = is_flat ? 1 : 2, .interleaved = call.integer("interleaved", 0) != 0});
  if (rotated < width) y = ops::concat({y, slice_axis(x, 3, rotated, width)}, 3);
  call.result(0, is_flat ? reshape(y, shape_of(given)) : y);
}

// Bodies change the scores before the softmax, and what it makes of them.
void lower_flex_attention(LowerCall& call) {
  const DataType type = call.type(0).data_type;
  Value* q = call.operand(0);
  Value* k = call.operand(1);
  Value* v = call.operand(2);
  call.require(q->type().rank() == 4 && k->type().rank() == 4 && v->type().rank() == 4,
               "its operands are to be [batch, heads, length, width]");
  const int64_t times = extent(q, 1) / std::max<int64_t>(1, extent(k, 1));
  call.require(times * extent(k, 1) == extent(q, 1),
               "the heads of its queries are no multiple of those of its keys");
  DataType computing = is_half(type) ? DataType::fp32 : type;
  if (call.integer("softmax_precision", 0) != 0) computing = data_type_of(call.integer("softmax_precision"));
  const double scale = call.real("scale", 1 / std::sqrt(static_cast<double>(extent(q, 3))));
  Value* products = ops::matmul(ops::cast(q, computing), ops::cast(repeat_heads(k, times), computing),
                                {.transpose_b = true});
  Value* scores = ops::multiply(products, scale);
  const auto changed = [&](const char* body, Value* value) {
    return call.has_argument(body) ? call.inline_body(call.body(body), {value}).at(0) : value;
  };
  Value* weights = changed("prob_mod", ops::softmax(changed("score_mod", scores), -1));
  call.result(0, ops::cast(ops::matmul(weights, ops::cast(repeat_heads(v, times), computing)), type));
}

const RuleRegistrations kRegistration{
    {.name = "FlexAttention", .domain = "ai.onnx.preview", .lower = lower_flex_attention},
    {.name = "Attention", .lower = lower_attention},
    {.name = "RotaryEmbedding", .lower = lower_rotary_embedding},
};

}  // namespace
}  // namespace tessera::onnx
