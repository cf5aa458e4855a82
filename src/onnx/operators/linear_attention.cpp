// LinearAttention, CausalConvWithState, TensorScatter: what models of long texts keep from call to call.
#include <cmath>

#include "onnx/windows.h"

namespace tessera::onnx {
namespace {

// [batch, time, heads * width] as [time, batch, heads, width], in fp32.
Value* by_time(const program::Call& call, Value* x, int64_t heads) {
  const Shape shape = shape_of(x);
  call.require(shape.size() == 3 && heads > 0 && shape[2] % heads == 0,
               "its operands are to be [batch, time, heads * width]");
  return transpose(reshape(ops::cast(x, DataType::fp32), {shape[0], shape[1], heads, shape[2] / heads}),
                   {1, 0, 2, 3});
}

Value* at_time(Value* x, int64_t t) {
  return squeeze(slice_axis(x, 0, t, t + 1), {0});
}

// A state [batch, heads, keys, values] takes key and value of each step, and the query reads it. Yang et al.
// 2024, "Gated Delta Networks", for the rules.
void lower_linear_attention(LowerCall& call) {
  const DataType type = call.type(0).data_type;
  const int64_t query_heads = call.integer("q_num_heads");
  const int64_t heads = call.integer("kv_num_heads");
  call.require(heads > 0 && query_heads % heads == 0, "q_num_heads is no multiple of kv_num_heads");
  const std::string rule = call.text("update_rule", "gated_delta");
  const bool gated = rule == "gated" || rule == "gated_delta";
  const bool corrects = rule == "delta" || rule == "gated_delta";
  call.require(gated || corrects || rule == "linear", "there is no update_rule '" + rule + "'");
  call.require(gated == call.has(4) && corrects == call.has(5),
               "its decay and beta are not those of its update_rule");
  Value* q = by_time(call, call.operand(0), query_heads);
  Value* k = by_time(call, call.operand(1), heads);
  Value* v = by_time(call, call.operand(2), heads);
  // One number for each head, or for each of its keys.
  Value* decay = gated ? ops::exp(by_time(call, call.operand(4), heads)) : nullptr;
  Value* beta = corrects ? by_time(call, call.operand(5), extent(call.operand(5), 2)) : nullptr;
  const int64_t batch = extent(q, 1);
  const int64_t keys = extent(k, 3);
  const int64_t values = extent(v, 3);
  const int64_t group = query_heads / heads;
  Value* state = call.has(3)
                     ? ops::cast(call.operand(3), DataType::fp32)
                     : broadcast(number(call.graph(), DataType::fp32, 0), {batch, heads, keys, values});
  const double given = call.real("scale", 0);
  const double scale = given == 0 ? 1 / std::sqrt(static_cast<double>(keys)) : given;
  std::vector<Value*> outputs;
  for (int64_t t = 0; t < extent(q, 0); ++t) {
    Value* key = unsqueeze(at_time(k, t), {3});    // [batch, heads, keys, 1]
    Value* value = unsqueeze(at_time(v, t), {2});  // [batch, heads, 1, values]
    if (gated) state = ops::multiply(state, unsqueeze(at_time(decay, t), {3}));
    if (corrects) {
      Value* before = ops::matmul(key, state, {.transpose_a = true});
      value = ops::multiply(unsqueeze(at_time(beta, t), {3}), ops::subtract(value, before));
    }
    state = ops::add(state, ops::multiply(key, value));
    Value* query = reshape(at_time(q, t), {batch, heads, group, keys});
    Value* read = ops::multiply(ops::matmul(query, state), scale);  // [batch, heads, group, values]
    outputs.push_back(reshape(read, {batch, 1, query_heads * values}));
  }
  call.result(0, ops::cast(outputs.size() == 1 ? outputs[0] : ops::concat(outputs, 1), type));
  call.result(1, ops::cast(state, call.has(3) ? call.type(3).data_type : type));
}

// A depthwise convolution that sees no later element; what it saw last is the state.
void lower_causal_convolution(LowerCall& call) {
  Value* x = call.operand(0);       // [batch, channels, length]
  Value* weight = call.operand(1);  // [channels, 1, window]
  const Shape shape = shape_of(x);
  call.require(shape.size() == 3 && weight->type().rank() == 3, "it takes [batch, channels, length]");
  const int64_t kept = extent(weight, 2) - 1;
  Value* before = call.has(3)
                      ? call.operand(3)
                      : broadcast(number(call.graph(), x->data_type(), 0), {shape[0], shape[1], kept});
  Value* whole = ops::concat({before, x}, 2);
  Value* y = ops::convolution(channels_last(whole), channels_last(weight), {.groups = shape[1]});
  if (call.has(2)) y = ops::add(y, call.operand(2));
  const std::string activation = call.text("activation", "none");
  if (activation == "silu" || activation == "swish") y = ops::silu(y);
  call.result(0, channels_first(y));
  call.result(1, slice_axis(whole, 2, extent(whole, 2) - kept, extent(whole, 2)));
}

// A cache with new elements from a place of its own in each row on.
void lower_tensor_scatter(LowerCall& call) {
  Value* cache = call.operand(0);
  Value* update = call.operand(1);
  const Shape shape = shape_of(cache);
  const Shape own = shape_of(update);
  const int64_t axis = axis_of(call, call.integer("axis", -2), std::ssize(shape));
  call.require(axis > 0 && own.size() == shape.size(), "its axis is to come after that of the batch");
  const std::string mode = call.text("mode", "linear");
  std::vector<Value*> places;
  for (int64_t i = 0; i < std::ssize(shape); ++i) {
    Value* place = counted(call.graph(), own, i);
    if (i == axis && call.has(2)) {
      Shape rows(own.size(), 1);
      rows[0] = own[0];
      place = ops::add(place, reshape(ops::cast(call.operand(2), DataType::int64), rows));
      if (mode == "circular") {
        Value* size =
            number(call.graph(), DataType::int64, static_cast<double>(shape[static_cast<size_t>(axis)]));
        place = ops::subtract(place, ops::multiply(ops::divide(place, size), size));
      }
    }
    places.push_back(place);
  }
  const int64_t count = element_count(own);
  Value* flat = ops::set_rows(reshape(cache, {element_count(shape)}),
                              reshape(unravel(places, shape), {count}), reshape(update, {count}));
  call.result(0, reshape(flat, shape));
}

const RuleRegistrations kRegistration{
    {.name = "LinearAttention", .lower = lower_linear_attention},
    {.name = "CausalConvWithState", .lower = lower_causal_convolution},
    {.name = "TensorScatter", .lower = lower_tensor_scatter},
};

}  // namespace
}  // namespace tessera::onnx
