#include "graph_fuzz/generator.h"

#include <algorithm>
#include <functional>

#include "tessera/base/error.h"

namespace tessera::testing {

Value* Generator::any() {
  const auto recent = std::min<int64_t>(8, static_cast<int64_t>(pool_.size()));
  return pool_[pool_.size() - 1 - static_cast<size_t>(below(recent))];
}

Value* Generator::of_rank(int64_t rank) {
  std::vector<Value*> fitting;
  for (Value* value : pool_) {
    if (value->type().rank() == rank) fitting.push_back(value);
  }
  return fitting.empty() ? nullptr : pick(fitting);
}

Value* Generator::partner(Value* x) {
  if (chance(25)) return parameter(chance(50) && x->type().rank() > 0 ? Shape{channels(x)} : Shape{});
  std::vector<Value*> fitting{x};
  for (Value* value : pool_) {
    try {
      if (broadcast_shapes(shape_of(value), shape_of(x)) == shape_of(x)) fitting.push_back(value);
    } catch (const Error&) {
      continue;
    }
  }
  return pick(fitting);
}

Value* Generator::squeeze(Value* x, const ExampleInput& range) {
  if (range.low < 0 && range.high > 0 && chance(70)) return x;
  return ops::add(ops::multiply(ops::sigmoid(x), range.high - range.low), range.low);
}

// Any elementwise operator of the registry on fp32, with values from the range of its first example.
Value* Generator::elementwise() {
  static const std::vector<const OperatorSchema*> schemas = [] {
    std::vector<const OperatorSchema*> list;
    for (const OperatorSchema* schema : OperatorRegistry::instance().all()) {
      if (schema->operator_class != OperatorClass::elementwise || schema->examples.empty()) continue;
      const auto& inputs = schema->examples.front().inputs;
      if (std::all_of(inputs.begin(), inputs.end(),
                      [](const ExampleInput& input) { return input.data_type == DataType::fp32; }))
        list.push_back(schema);
    }
    return list;
  }();
  const OperatorSchema& schema = *pick(schemas);
  const OperatorExample& example = schema.examples.front();
  Value* x = any();
  std::vector<Value*> inputs;
  for (const ExampleInput& range : example.inputs) {
    inputs.push_back(squeeze(inputs.empty() ? x : partner(x), range));
  }
  return ops::apply(schema.name, inputs, example.attributes)->output();
}

Value* Generator::chosen() {
  Value* x = any();
  Value* y = partner(x);
  Value* condition = chance(50) ? ops::less(x, y) : ops::greater_equal(x, ops::multiply(y, 0.5));
  if (chance(30)) condition = ops::logical_not(condition);
  return chance(80) ? ops::select(condition, x, y) : ops::cast(condition, DataType::fp32);
}

Value* Generator::reduction() {
  Value* x = any();
  ops::ReduceOptions options{.axes = {}, .keep_dimensions = chance(50)};
  for (int64_t axis = 0; axis < x->type().rank(); ++axis) {
    if (chance(50)) options.axes.push_back(axis);
  }
  switch (below(5)) {
    case 0:
      return ops::reduce_sum(x, options);
    case 1:
      return ops::reduce_mean(x, options);
    case 2:
      return ops::reduce_max(x, options);
    case 3:
      return ops::reduce_min(x, options);
    default:
      return x->type().rank() == 0 ? nullptr : ops::cast(ops::argmax(x), DataType::fp32);
  }
}

Value* Generator::activation(Value* x) {
  switch (below(4)) {
    case 0:
      return ops::relu(x);
    case 1:
      return ops::gelu(x);
    case 2:
      return ops::silu(x);
    default:
      return x;
  }
}

Value* Generator::product() {
  Value* x = any();
  if (x->type().rank() < 1) return nullptr;
  if (x->type().rank() > 1 && chance(15)) return attention(x);
  const int64_t features = channels(x);
  if (x->type().rank() != 2) x = ops::reshape(x, {x->type().element_count() / features, features});
  const int64_t outputs = 1 + below(12);
  const bool transposed = chance(50);
  Value* weight = parameter(transposed ? Shape{outputs, features} : Shape{features, outputs});
  Value* y = ops::matmul(x, weight, {.transpose_b = transposed});
  if (chance(60)) y = ops::add(y, parameter({outputs}));
  return activation(y);
}

// Rows attend to each other or to learned keys, in as many heads as divide the channels.
Value* Generator::attention(Value* x) {
  const int64_t heads = channels(x) % 2 == 0 && chance(50) ? 2 : 1;
  const int64_t width = channels(x) / heads;
  const int64_t rows = x->type().element_count() / channels(x);
  if (rows > 60) return nullptr;  // the reference takes long for all pairs
  Value* q = ops::transpose(ops::reshape(x, {1, rows, heads, width}), {0, 2, 1, 3});
  const int64_t keys = chance(50) ? rows : 1 + below(9);
  Value* k = keys == rows ? q : parameter({1, heads, keys, width});
  Value* v = chance(50) ? k : parameter({1, heads, keys, width});
  ops::AttentionOptions options{.causal = chance(50)};
  if (chance(30)) options.bias = parameter({1, chance(50) ? heads : 1, rows, keys});
  const ops::Attention attention = ops::attention(q, k, v, options);
  if (chance(20)) extra_.push_back(attention.log_sum);
  return ops::reshape(ops::transpose(attention.y, {0, 2, 1, 3}), x->shape());
}

Value* Generator::convolution() {
  Value* x = of_rank(4);
  if (x == nullptr) return nullptr;
  const int64_t c = channels(x);
  const int64_t groups = c % 2 == 0 && chance(30) ? (chance(50) ? 2 : c) : 1;
  const int64_t outputs = groups * (1 + below(std::max<int64_t>(1, 9 / groups)));
  const int64_t kernel = 1 + below(3);
  const int64_t stride = 1 + below(2);
  const int64_t padding = below(kernel);
  const int64_t dilation = chance(20) ? 2 : 1;
  Value* y = ops::convolution(x, parameter({outputs, kernel, kernel, c / groups}, 0.5),
                              {.strides = {stride, stride},
                               .padding_low = {padding, padding},
                               .padding_high = {},
                               .dilations = {dilation, dilation},
                               .groups = groups});
  if (chance(40)) y = ops::add(y, parameter({outputs}));
  if (chance(30)) y = normalised(y);
  if (chance(30) && shape_of(y) == shape_of(x)) y = ops::add(y, x);
  return activation(y);
}

Value* Generator::normalised(Value* x) {
  const int64_t c = channels(x);
  Value* scale = parameter({c}, 0.5, 1);
  Value* bias = parameter({c}, 0.5);
  if (x->type().element_count() / c < 3 || chance(30)) {
    Value* variance = add_input(InputRole::state, {c}, 0.5, 2);
    return ops::batch_norm_inference(x, scale, bias, parameter({c}), variance);
  }
  const ops::BatchNorm norm = ops::batch_norm_training(x, scale, bias, 1e-2);
  Value* running = add_input(InputRole::state, {c}, 0, 1);
  updates_.push_back({running, ops::add(ops::multiply(running, 0.9), ops::multiply(norm.mean, 0.1))});
  return norm.result;
}

Value* Generator::norm() {
  Value* x = any();
  if (x->type().rank() < 2) return nullptr;
  const int64_t c = channels(x);
  switch (below(4)) {
    case 0:
      return ops::layer_norm(x, parameter({c}, 0.5, 1), parameter({c}), 1, 1e-2);
    case 1:
      return ops::group_norm(x, parameter({c}, 0.5, 1), parameter({c}), c % 2 == 0 ? 2 : 1, 1e-2);
    case 2:
      return chance(50) ? ops::softmax(x) : ops::log_softmax(x);
    default:
      return normalised(x);
  }
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

Value* Generator::movement() {
  Value* x = any();
  const int64_t rank = x->type().rank();
  if (rank == 0) return nullptr;
  const auto count = static_cast<size_t>(rank);
  const auto axis = static_cast<size_t>(below(rank));
  const int64_t extent = shape_of(x)[axis];
  std::vector<int64_t> low(count, 0);
  std::vector<int64_t> high(count, 0);
  switch (below(7)) {
    case 0:
      return ops::reshape(x, {x->type().element_count()});
    case 1: {
      std::vector<int64_t> permutation;
      for (int64_t i = 0; i < rank; ++i)
        permutation.insert(permutation.begin() + below(static_cast<int64_t>(permutation.size()) + 1), i);
      return ops::transpose(x, permutation);
    }
    case 2:
      low[axis] = below(extent);
      high.assign(count, ops::kWholeAxis);
      return ops::slice(x, low, high);
    case 3:
      low[axis] = below(3);
      high[axis] = below(3);
      return ops::pad(x, low, high, 0.5);
    case 4:
      return ops::concat({x, chance(50) ? x : ops::negate(x)}, static_cast<int64_t>(axis));
    case 5: {
      if (extent < 2) return nullptr;
      const int64_t cut = 1 + below(extent - 1);
      const std::vector<Value*> parts = ops::split(x, {cut, extent - cut}, static_cast<int64_t>(axis));
      extra_.push_back(parts[0]);
      return parts[1];
    }
    default: {
      SymbolicShape wide = x->shape();
      wide.insert(wide.begin(), 2);
      return rank < 4 ? ops::broadcast_to(x, wide) : nullptr;
    }
  }
}

Value* Generator::indexing() {
  Value* x = any();
  if (x->type().rank() < 1) return nullptr;
  const int64_t rows = shape_of(x)[0];
  const auto indices = [&] {
    return add_input(InputRole::input, {1 + below(6)}, 0, static_cast<double>(rows), DataType::int32);
  };
  switch (below(3)) {
    case 0:
      return ops::gather(x, indices());
    case 1:
      return ops::one_hot(indices(), rows);
    default:
      return ops::top_k(x, 1 + below(channels(x))).values;
  }
}

Value* Generator::noise() {
  if (random_counter_ == nullptr) return nullptr;
  Value* x = any();
  if (chance(70)) return ops::dropout(x, random_counter_, 0.3, ++streams_);
  return ops::add(x, ops::random_normal(random_counter_, x->shape(), ++streams_));
}

}  // namespace tessera::testing
