#include "kernel_fuzz/pattern_problems.h"

#include <algorithm>

#include "tessera/base/error.h"
#include "tessera/passes/differentiate.h"
#include "tessera/passes/fuse.h"
#include "tessera/passes/pass.h"
#include "tessera/passes/settled_values.h"

#include "kernel_fuzz/convolution_problem.h"
#include "kernel_fuzz/problem_maker.h"
#include "support/tf32.h"

namespace tessera::testing {
namespace {

constexpr int64_t kMostProducts = 300000;  // of one contraction

Shape shape_of(const Value* value) {
  return value->type().static_shape();
}

int64_t channels(const Value* value) {
  return shape_of(value).back();
}

// Builds one network; what it is differentiated to is remembered.
class Network {
 public:
  explicit Network(Draw& draw)
      : draw_(draw), maker_(draw), type_(draw.chance(80) ? DataType::fp32 : maker_.floating()) {}

  ProblemMaker& maker() { return maker_; }

  void build() {
    using Part = Value* (Network::*)();
    const std::vector<Part> parts{&Network::convolutions, &Network::normalized_convolutions,
                                  &Network::products,     &Network::attention,
                                  &Network::end_of_part,  &Network::lone_cluster,
                                  &Network::few_rows,     &Network::normalization};
    Value* result = (this->*draw_.pick(parts))();
    if (draw_.chance(30)) result = cluster(result);
    maker_.graph().add_output("result", result);
    if (draw_.chance(50)) add_gradients(result);
  }

 private:
  Value* input(const Shape& shape) {
    sources_.push_back(maker_.input(type_, shape));
    return sources_.back();
  }
  Value* parameter(const Shape& shape, double low = -1, double high = 1) {
    sources_.push_back(maker_.input(type_, shape, low, high, InputRole::parameter));
    return sources_.back();
  }
  Value* statistic(int64_t count, double low, double high) {
    const DataType type = type_ == DataType::fp64 ? type_ : DataType::fp32;
    sources_.push_back(maker_.input(type, {count}, low, high, InputRole::parameter));
    return sources_.back();
  }

  Value* activation(Value* x) {
    switch (draw_.below(14)) {
      case 0:
        return ops::relu6(x);
      case 1:
        return ops::leaky_relu(x, 0.1);
      case 2:
        return ops::elu(x);
      case 3:
        return ops::gelu(x, draw_.chance(50));
      case 4:
        return ops::silu(x);
      case 5:
        return ops::sigmoid(x);
      case 6:
        return ops::tanh(x);
      case 7:
        return draw_.chance(50) ? ops::softplus(x) : ops::mish(x);
      case 8:
        return ops::hard_sigmoid(x);
      case 9:
        return draw_.chance(50) ? ops::hard_swish(x) : ops::clip(x, -0.5, 0.75);
      case 10:
        return x;
      default:
        return ops::relu(x);
    }
  }

  // What follows a contraction in networks, and what nearly does.
  Value* epilogue(Value* y) {
    if (draw_.chance(15)) y = ops::multiply(y, parameter({channels(y)}));
    if (draw_.chance(60)) y = ops::add(y, parameter(draw_.chance(90) ? Shape{channels(y)} : Shape{}));
    if (draw_.chance(10)) y = ops::add(y, parameter({channels(y)}));
    if (draw_.chance(25)) y = activation(y);
    if (draw_.chance(30)) {
      Value* residual = input(shape_of(y));
      y = draw_.chance(80) ? ops::add(y, residual) : ops::multiply(residual, y);
    }
    if (draw_.chance(8)) keep(y);
    return activation(y);
  }

  // Something else reads it too.
  void keep(Value* value) {
    maker_.graph().add_output("kept_" + std::to_string(maker_.graph().outputs().size()), value);
  }

  // Of x itself, where that is what came before.
  Value* convolve(Value* x, RandomConvolution own) {
    if (x != nullptr) {
      own.options.groups = 1;
      own.weight.back() = channels(x);
      own.options.strides.assign(2, draw_.between(1, 2));
      own.options.dilations.assign(2, 1);
      const int64_t window = draw_.chance(50) ? 1 : 3;
      own.weight[1] = own.weight[2] = window;
      own.options.padding_low.assign(2, window / 2);
      own.options.padding_high.assign(2, window / 2);
    } else {
      x = input(own.x);
    }
    if (!draw_.chance(15)) return ops::convolution(x, parameter(own.weight), own.options);
    return ops::apply("convolution", {x, parameter(own.weight), parameter({own.weight[0]})},
                      {{"strides", own.options.strides},
                       {"padding_low", own.options.padding_low},
                       {"padding_high", own.options.padding_high},
                       {"dilations", own.options.dilations},
                       {"groups", own.options.groups}})
        ->output();
  }

  Value* convolutions() {
    Value* y =
        epilogue(convolve(nullptr, random_convolution(draw_, draw_.chance(80) ? 2 : 0, kMostProducts)));
    if (y->type().rank() == 4 && draw_.chance(30))
      y = epilogue(convolve(y, random_convolution(draw_, 2, kMostProducts)));
    return y;
  }

  Value* batch_norm(Value* x) {
    const int64_t count = channels(x);
    Value* scale = statistic(count, 0.5, 2);
    Value* bias = statistic(count, -1, 1);
    if (draw_.chance(30)) {
      Value* mean = maker_.input(scale->data_type(), {count}, -1, 1, InputRole::state);
      Value* variance = maker_.input(scale->data_type(), {count}, 0.2, 2, InputRole::state);
      return ops::batch_norm_inference(x, scale, bias, mean, variance, 1e-2);
    }
    const ops::BatchNorm norm = ops::batch_norm_training(x, scale, bias, 1e-2);
    if (draw_.chance(70)) keep(norm.mean);
    if (draw_.chance(70)) keep(norm.variance);
    return norm.result;
  }

  Value* pool(Value* x) {
    const ops::PoolOptions options{.window = {3, 3},
                                   .strides = {2, 2},
                                   .padding_low = {1, 1},
                                   .padding_high = {},
                                   .count_padding = false};
    return draw_.chance(70) ? ops::max_pool(x, options) : ops::average_pool(x, options);
  }

  Value* normalized_convolutions() {
    Value* y = convolve(nullptr, random_convolution(draw_, 2, kMostProducts));
    for (int64_t layers = draw_.between(1, 2); layers > 0; --layers) {
      y = batch_norm(y);
      if (draw_.chance(30)) y = ops::add(y, input(shape_of(y)));
      if (draw_.chance(15)) y = ops::add(y, batch_norm(convolve(nullptr, same_result(shape_of(y)))));
      if (draw_.chance(75)) y = draw_.chance(80) ? ops::relu(y) : activation(y);
      if (draw_.chance(20)) y = pool(y);
      if (layers > 1) y = convolve(y, random_convolution(draw_, 2, kMostProducts));
    }
    return y;
  }

  // A pointwise convolution to the shape.
  RandomConvolution same_result(const Shape& y) {
    RandomConvolution own;
    const int64_t inputs = draw_.extent(20);
    own.y = y;
    own.x = y;
    own.x.back() = inputs;
    own.weight = {y.back(), 1, 1, inputs};
    own.options = {{1, 1}, {0, 0}, {0, 0}, {1, 1}, 1};
    return own;
  }

  Value* products() {
    const int64_t rows = draw_.extent(60);
    Value* y = input(draw_.chance(70) ? Shape{rows, draw_.extent(60)}
                                      : Shape{draw_.between(1, 4), rows, draw_.extent(40)});
    for (int64_t layers = draw_.between(1, 2); layers > 0; --layers) {
      const int64_t outputs = draw_.extent(60);
      const bool transposed = draw_.chance(50);
      Value* weight = parameter(transposed ? Shape{outputs, channels(y)} : Shape{channels(y), outputs});
      y = epilogue(ops::matmul(y, weight, {.transpose_b = transposed}));
    }
    if (draw_.chance(30) && y->type().rank() == 2) {
      Value* labels =
          maker_.finite_input(DataType::int32, {shape_of(y)[0]}, 0, static_cast<double>(channels(y) - 1));
      y = ops::cast(ops::cross_entropy(y, labels, {.smoothing = draw_.chance(50) ? 0.1 : 0.0}), type_);
    }
    return y;
  }

  Value* attention() {
    const int64_t batch = draw_.between(1, 2);
    const int64_t key_heads = draw_.between(1, 2);
    const int64_t heads = key_heads * (draw_.chance(30) ? 2 : 1);
    const int64_t rows = draw_.between(1, 20);
    const int64_t width = draw_.between(1, 16);
    Value* x = input({batch, rows, heads * width});
    Value* normed =
        ops::layer_norm(x, statistic(heads * width, 0.5, 2), statistic(heads * width, -1, 1), 1, 1e-2);
    const auto projected = [&](int64_t count) {
      Value* product = ops::matmul(normed, parameter({heads * width, count * width}, -0.4, 0.4));
      return ops::transpose(ops::reshape(product, {batch, rows, count, width}), {0, 2, 1, 3});
    };
    ops::AttentionOptions options{.causal = draw_.chance(50)};
    if (draw_.chance(30)) options.bias = parameter({1, heads, rows, rows});
    Value* q = projected(heads);
    Value* k = projected(key_heads);
    const ops::Attention made = ops::attention(q, k, projected(key_heads), options);
    Value* y = ops::reshape(ops::transpose(made.y, {0, 2, 1, 3}), x->shape());
    return draw_.chance(70) ? ops::add(y, x) : y;
  }

  // What a part of a transformer adds to its sums, which are normalized.
  Value* end_of_part() {
    const int64_t width = draw_.between(1, 80);
    Value* x = input({draw_.between(1, 4), draw_.between(1, 40), draw_.between(1, 20)});
    Value* branch = ops::matmul(x, parameter({channels(x), width}));
    if (draw_.chance(75)) branch = ops::add(branch, parameter({width}));
    Value* counter = maker_.finite_input(DataType::int64, {2}, 0, 1e6);
    if (draw_.chance(85)) branch = ops::dropout(branch, counter, draw_.uniform(0, 0.9), draw_.below(1000));
    Value* sum = ops::add(input(shape_of(branch)), branch);
    Value* y = ops::layer_norm(sum, statistic(width, 0.5, 2), statistic(width, -1, 1), 1, 1e-2);
    return draw_.chance(50) ? ops::add(y, sum) : y;
  }

  // What a decoder makes of its next tokens.
  Value* few_rows() {
    const int64_t depth = 8 * draw_.between(1, 40);
    Value* x = input({draw_.between(1, 10), depth});
    if (draw_.chance(70)) x = ops::layer_norm(x, statistic(depth, 0.5, 2), statistic(depth, -1, 1), 1, 1e-2);
    if (draw_.chance(10)) keep(x);
    return epilogue(ops::matmul(x, parameter({draw_.extent(60), depth}), {.transpose_b = true}));
  }

  Value* normalization() {
    Value* x = input(maker_.shape(3, 4, 2000));
    switch (draw_.below(4)) {
      case 0:
        return activation(
            ops::layer_norm(x, statistic(channels(x), 0.5, 2), statistic(channels(x), -1, 1), 1, 1e-2));
      case 1:
        return activation(ops::group_norm(x, statistic(channels(x), 0.5, 2), statistic(channels(x), -1, 1),
                                          channels(x) % 2 == 0 && channels(x) > 0 ? 2 : 1, 1e-2));
      case 2:
        return draw_.chance(50) ? ops::softmax(x) : ops::log_softmax(x);
      default:
        return activation(batch_norm(activation(x)));
    }
  }

  Value* lone_cluster() { return cluster(input(maker_.shape(1, 4, 2000))); }

  // Elementwise work in which parts are read several times, at times with conditions and casts, and sums.
  Value* cluster(Value* x) {
    std::vector<Value*> made{x};
    for (int64_t count = draw_.between(2, 9); count > 0; --count) made.push_back(step(made));
    for (int64_t ends = draw_.below(3); ends > 0; --ends) {
      Value* y = draw_.pick(made);
      ops::ReduceOptions options{.axes = {}, .keep_dimensions = draw_.chance(50)};
      for (int64_t axis = 0; axis < y->type().rank(); ++axis) {
        if (draw_.chance(50)) options.axes.push_back(axis);
      }
      const int64_t kind = draw_.below(6);
      keep(kind == 0   ? ops::reduce_max(y, options)
           : kind == 1 ? ops::reduce_min(y, options)
           : kind == 2 ? ops::reduce_mean(y, options)
                       : ops::reduce_sum(y, options));
    }
    return made.back();
  }

  Value* step(const std::vector<Value*>& made) {
    Value* a = draw_.pick(made);
    Value* b = draw_.chance(60)   ? draw_.pick(made)
               : draw_.chance(50) ? parameter({channels_or_one(a)})
                                  : parameter({});
    switch (draw_.below(12)) {
      case 0:
      case 1:
        return ops::add(a, b);
      case 2:
      case 3:
        return ops::multiply(a, b);
      case 4:
        return ops::subtract(a, b);
      case 5:
        return ops::divide(a, ops::add(ops::absolute(b), 0.5));
      case 6:
        return draw_.chance(50) ? ops::maximum(a, b) : ops::minimum(a, b);
      case 7:
        return ops::select(draw_.chance(50) ? ops::less(a, b) : ops::greater_equal(a, b), a,
                           ops::multiply(a, 0.5));
      case 8:
        return ops::cast(ops::cast(a, draw_.pick(std::vector<DataType>{DataType::fp16, DataType::bf16,
                                                                       DataType::fp64, DataType::int32})),
                         a->data_type());
      case 9:
        return draw_.chance(50) ? ops::sqrt(ops::add(ops::square(a), 0.1))
                                : ops::exp(ops::minimum(a, ops::constant_like(a, 2)));
      default:
        return activation(a);
    }
  }

  static int64_t channels_or_one(const Value* x) { return x->type().rank() == 0 ? 1 : channels(x); }

  void add_gradients(Value* result) {
    if (!is_floating(result->data_type())) return;
    Value* weights = maker_.input(result->data_type(), shape_of(result));
    Value* loss = ops::reduce_sum(ops::multiply(result, weights));
    std::vector<Value*> gradients;
    try {
      gradients = differentiate(maker_.graph(), loss, sources_);
    } catch (const Error& error) {
      if (error.code() != ErrorCode::invalid_argument) throw;
      return;  // an operator on the way has no gradient
    }
    for (size_t i = 0; i < gradients.size(); ++i)
      maker_.graph().add_output("gradient_" + std::to_string(i), gradients[i]);
  }

  Draw& draw_;
  ProblemMaker maker_;
  DataType type_;
  std::vector<Value*> sources_;
};

PassOptions draw_options(Draw& draw) {
  PassOptions options;
  options.precision = draw.pick(std::vector<Precision>{Precision::fp32, Precision::fp32, Precision::tf32,
                                                       Precision::fp16, Precision::bf16});
  options.frozen = draw.chance(30);
  options.deterministic = draw.chance(60);
  if (draw.chance(20)) options.recompute = true;
  return options;
}

bool is_worth_running(Draw& draw, const Node& node) {
  const bool works = node.schema().operator_class != OperatorClass::source;
  return works && (node.body() != nullptr || draw.chance(25));
}

}  // namespace

std::vector<KernelProblem> draw_pattern_problems(Draw& draw, const Device& device) {
  Network network(draw);
  network.build();
  return problems_of_network(draw, network.maker(), device);
}

std::vector<KernelProblem> problems_of_network(Draw& draw, ProblemMaker& maker, const Device& device) {
  const PassOptions options = draw_options(draw);
  Graph& graph = maker.graph();
  run_pipeline(graph, pipeline(options), {options, device.pass_target(options)},
               {.disabled = {}, .verify = true, .dump = {}});
  std::unordered_map<const Value*, Tensor> values;
  for (const auto& input : graph.inputs()) values[input.get()] = maker.contents(input.get());
  const std::shared_ptr<Graph> owned = maker.take_graph();
  KernelProblem settings;
  draw_settings(draw, settings);
  const std::unordered_set<const Value*> settled = settled_values(*owned, true);
  std::vector<KernelProblem> problems;
  for (const auto& node : owned->nodes()) {
    KernelProblem problem;
    problem.graph = owned;
    problem.node = node.get();
    problem.deterministic = options.deterministic;
    problem.tf32 = options.precision == Precision::tf32;
    problem.threads = settings.threads;
    std::vector<const Tensor*> inputs;
    for (const Value* input : node->inputs()) {
      const Tensor& value = values.at(input);
      problem.inputs.push_back(problem.tf32 ? rounded_to_tf32(value) : value);
      problem.frozen_inputs.push_back(options.frozen && settled.contains(input));
    }
    for (const Tensor& input : problem.inputs) inputs.push_back(&input);
    std::vector<Tensor> outputs = run_reference(*node, inputs);
    for (size_t i = 0; i < outputs.size(); ++i) values[node->output(i)] = std::move(outputs[i]);
    if (is_worth_running(draw, *node)) problems.push_back(std::move(problem));
  }
  return problems;
}

}  // namespace tessera::testing
