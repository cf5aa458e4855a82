// Layers of networks: products, convolutions, normalizations, pooling.
#include <algorithm>

#include "graph_fuzz/generator.h"

namespace tessera::testing {

Value* Generator::product() {
  Value* x = any();
  if (x->type().rank() < 1 || channels(x) == 0) return nullptr;
  if (x->type().rank() > 1 && chance(25)) return attention(x);
  const int64_t features = channels(x);
  if (x->type().rank() != 2) x = ops::reshape(x, {rows(x), features});
  const int64_t outputs = chance(10) ? 16 * (1 + below(4)) : 1 + below(12);
  const bool transposed = chance(50);
  Value* weight = parameter(transposed ? Shape{outputs, features} : Shape{features, outputs});
  Value* y = ops::matmul(x, weight, {.transpose_b = transposed});
  if (chance(60)) y = ops::add(y, parameter({outputs}));
  if (chance(20) && shape_of(y) == shape_of(x)) y = ops::add(y, x);
  return activation(y);
}

// Rows attend to each other or to learned keys, in as many heads as divide the channels. The rows of a value
// of three axes are those of so many texts.
Value* Generator::attention(Value* x) {
  std::vector<int64_t> possible{1};
  for (const int64_t heads : {2, 3, 4}) {
    if (channels(x) % heads == 0) possible.push_back(heads);
  }
  const int64_t heads = pick(possible);
  const int64_t width = channels(x) / heads;
  const int64_t texts = x->type().rank() == 3 ? shape_of(x)[0] : 1;
  const int64_t length = rows(x) / std::max<int64_t>(texts, 1);
  if (length > 60 || length == 0) return nullptr;  // the reference takes long for all pairs
  Value* q = ops::transpose(ops::reshape(x, {texts, length, heads, width}), {0, 2, 1, 3});
  const int64_t keys = chance(50) ? length : 1 + below(9);
  const int64_t key_heads = heads > 1 && chance(30) ? 1 + (heads == 4 ? below(2) : 0) : heads;
  Value* k = keys == length && key_heads == heads ? q : parameter({texts, key_heads, keys, width});
  Value* v = chance(50) ? k : parameter({texts, key_heads, keys, width});
  ops::AttentionOptions options{.causal = chance(50)};
  if (chance(30)) options.bias = parameter({chance(50) ? texts : 1, chance(50) ? heads : 1, length, keys});
  if (chance(20)) {
    Tensor lengths(DataType::int32, {texts});
    for (int64_t i = 0; i < texts; ++i) lengths.set(i, static_cast<double>(1 + below(keys)));
    options.key_lengths = ops::constant(x->graph(), lengths);
  }
  const ops::Attention attention = ops::attention(q, k, v, options);
  if (chance(20)) extra_.push_back(attention.log_sum);
  return ops::reshape(ops::transpose(attention.y, {0, 2, 1, 3}), x->shape());
}

Value* Generator::image() {
  if (Value* x = chance(80) ? of_rank(4) : nullptr) return x;
  return of_rank(chance(75) ? 3 : 5);
}

ops::ConvolutionOptions Generator::windows(const Value* x, int64_t window, int64_t groups) {
  const auto axes = static_cast<size_t>(x->type().rank() - 2);
  const int64_t stride = 1 + below(2);
  const int64_t padding = below(window);
  ops::ConvolutionOptions options{.strides = std::vector<int64_t>(axes, stride),
                                  .padding_low = std::vector<int64_t>(axes, padding),
                                  .padding_high = std::vector<int64_t>(axes, padding),
                                  .dilations = std::vector<int64_t>(axes, chance(20) ? 2 : 1),
                                  .groups = groups};
  if (chance(20)) options.padding_high.back() = below(window);
  if (chance(10)) options.strides.front() = 1 + below(3);
  return options;
}

Value* Generator::convolution() {
  Value* x = image();
  if (x == nullptr || channels(x) == 0) return nullptr;
  const int64_t c = channels(x);
  const int64_t groups = c % 2 == 0 && chance(30) ? (chance(50) ? 2 : c) : 1;
  int64_t outputs = groups * (1 + below(std::max<int64_t>(1, 9 / groups)));
  if (groups == 1 && chance(20)) outputs = 16;
  const int64_t window = 1 + below(3);
  Shape weight(static_cast<size_t>(x->type().rank()), window);
  weight.front() = outputs;
  weight.back() = c / groups;
  const ops::ConvolutionOptions options = windows(x, window, groups);
  Value* y = ops::convolution(x, parameter(weight, 0.5), options);
  if (chance(25)) {
    const Node& plain = *y->producer();
    y = ops::apply("convolution", {plain.input(0), plain.input(1), parameter({outputs})}, plain.attributes())
            ->output();
  }
  if (chance(40)) y = ops::add(y, parameter({outputs}));
  if (chance(30)) y = normalized(y);
  if (chance(30) && shape_of(y) == shape_of(x)) y = ops::add(y, x);
  return activation(y);
}

Value* Generator::transposed() {
  Value* x = image();
  if (x == nullptr || channels(x) == 0) return nullptr;
  const int64_t c = channels(x);
  const int64_t groups = c % 2 == 0 && chance(20) ? 2 : 1;
  const int64_t window = 1 + below(3);
  Shape weight(static_cast<size_t>(x->type().rank()), window);
  weight.front() = c;
  weight.back() = 1 + below(6);
  Value* y = ops::transposed_convolution(x, parameter(weight, 0.5), windows(x, window, groups));
  return activation(chance(40) ? ops::add(y, parameter({channels(y)})) : y);
}

Value* Generator::normalized(Value* x) {
  const int64_t c = channels(x);
  if (chance(10)) {  // frozen for good, as in the first layers of a detector
    const auto fixed = [&](double low, double high) {
      return add_input(InputRole::constant, {c}, low, high);
    };
    return ops::batch_norm_inference(x, fixed(0.5, 1.5), fixed(-0.5, 0.5), fixed(-1, 1), fixed(0.5, 2));
  }
  Value* scale = parameter({c}, 0.5, 1);
  Value* bias = chance(15) ? ops::broadcast_to(parameter({}), {c}) : parameter({c}, 0.5);
  if (rows(x) < 3 || frozen_ || chance(30)) {
    Value* variance = add_input(InputRole::state, {c}, 0.5, 2);
    return ops::batch_norm_inference(x, scale, bias, parameter({c}), variance);
  }
  const ops::BatchNorm norm = ops::batch_norm_training(x, scale, bias, 1e-2);
  // Both running statistics, one, or none.
  for (Value* statistic : {norm.mean, norm.variance}) {
    if (chance(20)) continue;
    Value* running = add_input(InputRole::state, {c}, 0, 1);
    update(running, ops::add(ops::multiply(running, 0.9), ops::multiply(statistic, 0.1)));
  }
  return norm.result;
}

Value* Generator::norm() {
  Value* x = any();
  if (x->type().rank() < 2) return nullptr;
  const int64_t c = channels(x);
  switch (below(5)) {
    case 0:
      return ops::layer_norm(x, parameter({c}, 0.5, 1), parameter({c}), 1, 1e-2);
    case 1:
      return ops::group_norm(x, parameter({c}, 0.5, 1), parameter({c}), c % 2 == 0 ? 2 : 1, 1e-2);
    case 2:
      return chance(50) ? ops::softmax(x) : ops::log_softmax(x);
    case 3: {
      Value* y = normalized(x);
      if (chance(50)) y = ops::add(y, x);
      return ops::relu(y);
    }
    default:
      return normalized(x);
  }
}

// As at the start of a network for images.
Value* Generator::pooled_norm() {
  Value* x = of_rank(4);
  if (x == nullptr) return nullptr;
  Value* y = ops::relu(normalized(x));
  if (chance(20)) extra_.push_back(y);
  const int64_t window = 2 + below(2);
  const int64_t padding = below(2);
  return ops::max_pool(
      y,
      {.window = {window, window}, .strides = {2, 2}, .padding_low = {padding, padding}, .padding_high = {}});
}

Value* Generator::pooling() {
  Value* x = of_rank(4);
  if (x == nullptr) return nullptr;
  const int64_t window = 1 + below(3);
  const int64_t stride = 1 + below(2);
  const int64_t padding = window > 1 ? below(2) : 0;
  const ops::PoolOptions options{.window = {window, window},
                                 .strides = {stride, stride},
                                 .padding_low = {padding, padding},
                                 .padding_high = {},
                                 .count_padding = chance(50)};
  switch (below(3)) {
    case 0:
      return ops::max_pool(x, options);
    case 1:
      return ops::average_pool(x, options);
    default:
      return ops::global_average_pool(x);
  }
}

}  // namespace tessera::testing
