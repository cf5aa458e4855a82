// Matrix products, convolutions with their gradients, attention.
#include <algorithm>
#include <cmath>

#include "tessera/base/rounding.h"
#include "tessera/ops/dropout_attention.h"

#include "kernel_fuzz/convolution_problem.h"
#include "kernel_fuzz/problem_maker.h"

namespace tessera::testing {
namespace {

int64_t products_of(const RandomConvolution& own) {
  return element_count(own.y) * (element_count(own.weight) / std::max<int64_t>(own.weight[0], 1));
}

// Whole vectors, as networks have, or any number.
int64_t channel_count(Draw& draw) {
  return draw.chance(40) ? 16 * draw.between(1, 5) : draw.extent(80);
}

struct SpatialAxis {
  int64_t extent, window, stride, dilation, low, high;
};

// What kernels are made for, each often enough to be met: windows of one element with and without strides,
// dense squares with and without dilations, and anything.
SpatialAxis draw_axis(Draw& draw, int64_t kind, bool many_pixels) {
  const int64_t extent = many_pixels ? draw.between(20, 60) : draw.between(1, 20);
  switch (kind) {
    case 0:
      return {extent, 1, 1, 1, 0, 0};
    case 1:
      return {extent, 1, draw.between(1, 3), 1, 0, 0};
    case 2:
      return {extent, 3, 1, 1, 1, 1};
    case 3:
      return {extent, draw.between(2, 3), 1, draw.between(2, 3), 2, 2};
    default: {
      const int64_t window = draw.pick(std::vector<int64_t>{1, 2, 3, 3, 4, 5, 7});
      const int64_t dilation = draw.chance(70) ? 1 : draw.between(2, 3);
      const int64_t most_padding = (dilation * (window - 1) + 1) / 2 + draw.below(2);
      const int64_t low = draw.between(0, most_padding);
      return {extent,   window, draw.between(1, 3),
              dilation, low,    draw.chance(50) ? low : draw.between(0, most_padding)};
    }
  }
}

RandomConvolution draw_convolution(Draw& draw, int64_t spatial_axes) {
  RandomConvolution own;
  int64_t groups = 1;
  int64_t inputs = channel_count(draw);
  int64_t outputs = channel_count(draw);
  if (draw.chance(20)) {
    groups = draw.chance(50) ? inputs : draw.between(1, 4);
    inputs = groups * quotient_rounded_up(inputs, groups);
    outputs = groups * (draw.chance(50) ? 1 : draw.between(1, 5));
  }
  const int64_t axes =
      spatial_axes > 0 ? spatial_axes : draw.pick(std::vector<int64_t>{1, 2, 2, 2, 2, 2, 2, 3});
  const int64_t kind = draw.below(7);
  const bool many_pixels = draw.chance(45);
  const bool same = draw.chance(65);  // along all axes
  const SpatialAxis first = draw_axis(draw, kind, many_pixels);
  own.x = {draw.chance(50) ? 1 : draw.between(1, 9)};
  own.weight = {outputs};
  for (int64_t i = 0; i < axes; ++i) {
    SpatialAxis axis = same ? first : draw_axis(draw, kind, many_pixels);
    const int64_t reach = axis.dilation * (axis.window - 1) + 1;
    axis.extent = std::max({axis.extent, reach - axis.low - axis.high, int64_t{1}});
    const int64_t rest = axis.extent + axis.low + axis.high - reach;
    own.x.push_back(axis.extent);
    own.weight.push_back(axis.window);
    own.y.push_back(rest / axis.stride + 1);
    own.options.strides.push_back(axis.stride);
    own.options.dilations.push_back(axis.dilation);
    own.options.padding_low.push_back(axis.low);
    own.options.padding_high.push_back(axis.high);
    own.output_padding.push_back(rest % axis.stride);
  }
  if (draw.chance(2)) own.x[0] = 0;
  own.x.push_back(inputs);
  own.weight.push_back(inputs / groups);
  own.y.insert(own.y.begin(), own.x[0]);
  own.y.push_back(outputs);
  own.options.groups = groups;
  return own;
}

// Two factors, each of a type of its own.
std::vector<Value*> bytes(ProblemMaker& maker, const Shape& left, const Shape& right) {
  constexpr TypeSet kBytes{DataType::int8, DataType::uint8};
  const double most = maker.draw().chance(50) ? 255 : 9;
  Value* first = maker.input(maker.type_of(kBytes), left, -most, most);
  return {first, maker.input(maker.type_of(kBytes), right, -most, most)};
}

void make_convolution(ProblemMaker& maker) {
  const RandomConvolution own = random_convolution(maker.draw());
  std::vector<Value*> inputs;
  const bool has_bias = maker.draw().chance(45);
  if (maker.draw().chance(15)) {
    inputs = bytes(maker, own.x, own.weight);
    if (has_bias) inputs.push_back(maker.input(DataType::int32, {own.weight[0]}, -1e6, 1e6));
  } else {
    const DataType type = maker.floating();
    inputs = {maker.input(type, own.x), maker.input(type, own.weight)};
    if (has_bias) inputs.push_back(maker.input(type, {own.weight[0]}));
  }
  ops::apply("convolution", inputs,
             {{"strides", own.options.strides},
              {"padding_low", own.options.padding_low},
              {"padding_high", own.options.padding_high},
              {"dilations", own.options.dilations},
              {"groups", own.options.groups}});
}

void make_data_gradient(ProblemMaker& maker) {
  const RandomConvolution own = random_convolution(maker.draw());
  const DataType type = maker.floating();
  ops::convolution_data_gradient(maker.input(type, own.y), maker.input(type, own.weight), to_symbolic(own.x),
                                 own.options);
}

void make_weight_gradient(ProblemMaker& maker) {
  const RandomConvolution own = random_convolution(maker.draw());
  const DataType type = maker.floating();
  ops::convolution_weight_gradient(maker.input(type, own.x), maker.input(type, own.y),
                                   to_symbolic(own.weight), own.options);
}

void make_transposed(ProblemMaker& maker) {
  const RandomConvolution own = random_convolution(maker.draw());
  const DataType type = maker.floating();
  ops::transposed_convolution(maker.input(type, own.y), maker.input(type, own.weight), own.options,
                              own.output_padding);
}

void make_matmul(ProblemMaker& maker) {
  Draw& draw = maker.draw();
  const int64_t m = draw.extent(150);
  const int64_t n = draw.extent(150);
  int64_t k = draw.extent(std::max<int64_t>(1, 1500000 / (m * n)));
  k = std::min<int64_t>(k, 2000);
  if (draw.chance(2)) k = 0;
  const ops::MatmulOptions options{.transpose_a = draw.chance(35), .transpose_b = draw.chance(35)};
  const Shape batch = m * n * k > 100000 || draw.chance(50) ? Shape{} : maker.shape(1, 3, 12);
  Shape a(batch);
  Shape b(batch);
  if (draw.chance(30)) b.clear();
  if (draw.chance(15)) a.clear();
  for (Shape* side : {&a, &b}) {
    for (int64_t& extent : *side) {
      if (draw.chance(15)) extent = 1;
    }
  }
  const auto append = [](Shape& shape, int64_t rows, int64_t columns, bool transposed) {
    shape.push_back(transposed ? columns : rows);
    shape.push_back(transposed ? rows : columns);
  };
  append(a, m, k, options.transpose_a);
  append(b, k, n, options.transpose_b);
  if (draw.chance(15)) {
    const std::vector<Value*> factors = bytes(maker, a, b);
    ops::matmul(factors[0], factors[1], options);
    return;
  }
  const DataType type = maker.floating();
  ops::matmul(maker.input(type, a), maker.input(type, b), options);
}

struct AttentionShapes {
  Shape q, k, v, bias;
};

AttentionShapes attention_shapes(Draw& draw) {
  const int64_t batch = draw.between(1, 3);
  const int64_t key_heads = draw.between(1, 3);
  const int64_t heads = key_heads * (draw.chance(30) ? draw.between(2, 3) : 1);
  const int64_t queries = draw.extent(40);
  const int64_t keys = draw.chance(50) ? queries : draw.extent(40);
  const int64_t width = draw.extent(40);
  return {{batch, heads, queries, width},
          {batch, key_heads, keys, width},
          {batch, key_heads, keys, draw.chance(60) ? width : draw.extent(40)},
          {draw.chance(50) ? batch : 1, draw.chance(50) ? heads : 1, queries, keys}};
}

// Of a node that drops weights; of any other none.
ops::AttentionDropout random_dropout(ProblemMaker& maker, bool drops) {
  if (!drops) return {};
  Draw& draw = maker.draw();
  Value* counter = maker.input(Tensor::from<int64_t>({2}, {draw.between(0, 1000), draw.between(0, 1000)}));
  return {.rate = draw.uniform(0.05, 0.6), .counter = counter, .stream = draw.between(0, 100)};
}

// Null where all keys are seen.
Value* random_key_lengths(ProblemMaker& maker, const AttentionShapes& shapes) {
  Draw& draw = maker.draw();
  if (shapes.k[2] == 0 || !draw.chance(25)) return nullptr;
  Tensor lengths(DataType::int32, {shapes.k[0]});
  for (int64_t i = 0; i < lengths.size(); ++i)
    lengths.set(i, static_cast<double>(draw.between(1, shapes.k[2])));
  return maker.input(lengths);
}

void make_attention(ProblemMaker& maker, bool drops) {
  Draw& draw = maker.draw();
  const AttentionShapes shapes = attention_shapes(draw);
  const DataType type = maker.floating();
  ops::AttentionOptions options{.causal = draw.chance(40)};
  if (draw.chance(50)) options.scale = draw.uniform(0.05, 1);
  Value* q = maker.input(type, shapes.q, -2, 2);
  Value* k = maker.input(type, shapes.k, -2, 2);
  Value* v = draw.chance(15) && shapes.k == shapes.v ? k : maker.input(type, shapes.v, -2, 2);
  const ops::AttentionDropout dropout = random_dropout(maker, drops);
  if (draw.chance(35)) options.bias = maker.input(type, shapes.bias, -2, 2);
  options.key_lengths = random_key_lengths(maker, shapes);
  ops::dropout_attention(q, k, v, dropout, options);
}

enum class GradientOf { operands, dropped_operands, bias };

void make_attention_gradient(ProblemMaker& maker, GradientOf wanted) {
  Draw& draw = maker.draw();
  const AttentionShapes shapes = attention_shapes(draw);
  const DataType type = maker.floating();
  ops::AttentionOptions options{.causal = draw.chance(40)};
  std::vector<Value*> inputs{maker.finite_input(type, shapes.q, -2, 2),
                             maker.finite_input(type, shapes.k, -2, 2),
                             maker.finite_input(type, shapes.v, -2, 2)};
  const ops::AttentionDropout dropout = random_dropout(maker, wanted == GradientOf::dropped_operands);
  if (wanted == GradientOf::bias || draw.chance(35))
    options.bias = maker.finite_input(type, shapes.bias, -2, 2);
  options.key_lengths = random_key_lengths(maker, shapes);
  // What the forward half made, as inputs.
  const ops::Attention forward = ops::dropout_attention(inputs[0], inputs[1], inputs[2], dropout, options);
  std::vector<const Tensor*> contents;
  for (const Value* input : forward.y->producer()->inputs()) contents.push_back(&maker.contents(input));
  const std::vector<Tensor> made = run_reference(*forward.y->producer(), contents);
  Value* dy = maker.input(type, forward.y->type().static_shape());
  Value* y = maker.input(made[0]);
  Value* log_sum = maker.input(made[1]);
  const ops::AttentionGradients gradients =
      ops::dropout_attention_gradient(dy, inputs[0], inputs[1], inputs[2], y, log_sum, dropout, options);
  if (wanted != GradientOf::bias) return;
  const Node& node = *gradients.q->producer();
  ops::apply("attention_bias_gradient", node.operands(node.inputs()), node.attributes());
}

}  // namespace

RandomConvolution random_convolution(Draw& draw, int64_t spatial_axes, int64_t most_products) {
  RandomConvolution own = draw_convolution(draw, spatial_axes);
  while (products_of(own) > most_products) own = draw_convolution(draw, spatial_axes);
  return own;
}

NodeMakers contraction_makers() {
  return {{"matmul", make_matmul},
          {"convolution", make_convolution},
          {"convolution_data_gradient", make_data_gradient},
          {"convolution_weight_gradient", make_weight_gradient},
          {"transposed_convolution", make_transposed},
          {"attention", [](ProblemMaker& maker) { make_attention(maker, false); }},
          {"attention_gradient",
           [](ProblemMaker& maker) { make_attention_gradient(maker, GradientOf::operands); }},
          {"attention_bias_gradient",
           [](ProblemMaker& maker) { make_attention_gradient(maker, GradientOf::bias); }},
          {"dropout_attention", [](ProblemMaker& maker) { make_attention(maker, true); }},
          {"dropout_attention_gradient",
           [](ProblemMaker& maker) { make_attention_gradient(maker, GradientOf::dropped_operands); }}};
}

}  // namespace tessera::testing
