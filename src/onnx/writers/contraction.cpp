// Products, convolutions and attention.
#include <algorithm>
#include <limits>

#include "onnx/graph_writer.h"

namespace tessera::onnx {
namespace {

Attributes window_attributes(const WriteCall& call) {
  return {{"strides", call.attributes().integers("strides")},
          {"pads", call.both("padding_low", "padding_high")},
          {"dilations", call.attributes().integers("dilations")},
          {"group", call.attributes().integer("groups")}};
}

void write_convolution(WriteCall& call) {
  std::vector<std::string> operands{call.operand(0, AxisOrder::channels_first),
                                    call.operand(1, AxisOrder::channels_first)};
  const bool has_bias = call.node().operand(2) != nullptr;
  if (!is_floating(call.node().operand(0)->data_type())) {
    if (!has_bias) {
      call.result("ConvInteger", operands, window_attributes(call), AxisOrder::channels_first);
      return;
    }
    const std::string sums = call.add("ConvInteger", operands, window_attributes(call));
    call.result("Add", {sums, call.broadcast_operand(2, AxisOrder::channels_first)}, {},
                AxisOrder::channels_first);
    return;
  }
  if (has_bias) operands.push_back(call.operand(2));
  call.result("Conv", operands, window_attributes(call), AxisOrder::channels_first);
}

void write_transposed_convolution(WriteCall& call) {
  Attributes attributes = window_attributes(call);
  attributes.set("output_padding", call.attributes().integers("output_padding"));
  call.result("ConvTranspose",
              {call.operand(0, AxisOrder::channels_first), call.operand(1, AxisOrder::channels_first)},
              attributes, AxisOrder::channels_first);
}

// The operand with its last two axes exchanged; of what is known now, not at each run.
std::string exchanged(WriteCall& call, size_t number) {
  const Value* value = call.node().operand(number);
  std::vector<int64_t> permutation;
  for (int64_t axis = 0; axis < value->type().rank(); ++axis) permutation.push_back(axis);
  std::swap(permutation[permutation.size() - 1], permutation[permutation.size() - 2]);
  return call.writer().transposed_name(value, permutation);
}

void write_matmul(WriteCall& call) {
  const Value* a = call.node().operand(0);
  const Value* b = call.node().operand(1);
  const bool exchanges_a = call.attributes().boolean("transpose_a");
  const bool exchanges_b = call.attributes().boolean("transpose_b");
  const bool is_floating = tessera::is_floating(a->data_type());
  if (a->type().rank() == 2 && b->type().rank() == 2 && is_floating) {
    call.result("Gemm", {call.operand(0), call.operand(1)},
                {{"transA", exchanges_a}, {"transB", exchanges_b}});
    return;
  }
  call.result(is_floating ? "MatMul" : "MatMulInteger", {exchanges_a ? exchanged(call, 0) : call.operand(0),
                                                         exchanges_b ? exchanged(call, 1) : call.operand(1)});
}

// fp32 [queries, keys]: 0 where a query sees a key, else minus infinity.
Tensor causal_mask(int64_t queries, int64_t keys) {
  Tensor mask(DataType::fp32, {queries, keys});
  for (int64_t query = 0; query < queries; ++query) {
    for (int64_t key = query + 1; key < keys; ++key)
      mask.data<float>()[static_cast<size_t>(query * keys + key)] = -std::numeric_limits<float>::infinity();
  }
  return mask;
}

// int64 0, 1, ..., as many as the scores [batch, heads, queries, keys] have along the axis, in that shape.
std::string places(WriteCall& call, const std::string& scores, int64_t axis,
                   const std::vector<int64_t>& shape) {
  const std::string count = call.add("Shape", {scores}, {{"start", axis}, {"end", axis + 1}});
  return call.add("Reshape", {call.counted(count), call.integers(shape)});
}

// Where the condition holds, scores become minus infinity.
std::string hide(WriteCall& call, const std::string& condition, const std::string& scores) {
  constexpr double kInfinity = std::numeric_limits<double>::infinity();
  const DataType type = call.node().operand(0)->data_type();
  return call.add("Where", {condition, call.constant(Tensor::scalar(type, -kInfinity)), scores});
}

// Scores of keys that stand after their query become minus infinity.
std::string hide_later_keys(WriteCall& call, const std::string& scores) {
  const Value* q = call.node().operand(0);
  const DataType type = q->data_type();
  const Dimension& queries = q->shape()[2];
  const Dimension& keys = call.node().operand(1)->shape()[2];
  if (queries.is_static() && keys.is_static())
    return call.add("Add", {scores, call.constant(causal_mask(queries.value(), keys.value()).cast(type))});
  const std::string later =
      call.add("Greater", {places(call, scores, 3, {1, -1}), places(call, scores, 2, {-1, 1})});
  return hide(call, later, scores);
}

// The same of keys from the lengths on.
std::string hide_keys_after(WriteCall& call, const std::string& lengths, const std::string& scores) {
  const std::string ends = call.add("Reshape", {lengths, call.integers({-1, 1, 1, 1})});
  const std::string keys = call.add("Cast", {places(call, scores, 3, {-1})}, {{"to", DataType::int32}});
  return hide(call, call.add("GreaterOrEqual", {keys, ends}), scores);
}

// What makes [batch, heads, rows, columns] of as much with another number of heads.
std::string with_heads(WriteCall& call, size_t like) {
  return call.integers({0, call.node().operand(like)->shape()[1].value(), -1, 0});
}

// Before opset 23 the format has none of its own. To a head of keys the queries of all heads that share it
// are as many more rows.
void write_attention(WriteCall& call) {
  const DataType type = call.node().operand(0)->data_type();
  const std::string scaled = call.add(
      "Mul", {call.operand(0), call.constant(Tensor::scalar(type, call.attributes().real("scale")))});
  const bool is_shared = call.node().operand(0)->shape()[1] != call.node().operand(1)->shape()[1];
  const auto by_heads_of = [&](size_t like, const std::string& name) {
    return is_shared ? call.add("Reshape", {name, with_heads(call, like)}) : name;
  };
  std::string scores = by_heads_of(0, call.add("MatMul", {by_heads_of(1, scaled), exchanged(call, 1)}));
  if (call.node().operand(3) != nullptr) scores = call.add("Add", {scores, call.operand(3)});
  if (call.attributes().boolean("causal")) scores = hide_later_keys(call, scores);
  if (call.node().operand(4) != nullptr) scores = hide_keys_after(call, call.operand(4), scores);
  const std::string weights = by_heads_of(1, call.add("Softmax", {scores}, {{"axis", -1}}));
  if (is_shared) {
    call.result("Reshape", {call.add("MatMul", {weights, call.operand(2)}), with_heads(call, 0)});
  } else {
    call.result("MatMul", {weights, call.operand(2)});
  }
}

const WriterRegistrations kRegistration{
    {"convolution", write_convolution},
    {"transposed_convolution", write_transposed_convolution},
    {"matmul", write_matmul},
    {"attention", write_attention},
};

}  // namespace
}  // namespace tessera::onnx
