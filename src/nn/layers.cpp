#include "tessera/nn/layers.h"

#include <algorithm>
#include <array>

#include "tessera/base/error.h"
#include "tessera/ops/rms_norm.h"

namespace tessera::nn {
namespace {

int64_t channels_of(Value* x) {
  return x->shape().back().value();
}

// Per-channel scale and bias of a normalization layer, named as PyTorch names them.
struct Affine {
  Value* scale;
  Value* bias;
};
Affine affine(Context& context, const std::string& name, int64_t channels,
              const Initializer& scale = ones()) {
  return {context.parameter(name + ".weight", {channels}, scale, false),
          context.parameter(name + ".bias", {channels}, zeros(), false)};
}

// [ends[0], kernel..., ends[1]], with the kernel last in files.
Variable kernel_weight(const std::string& name, const std::array<int64_t, 2>& ends, int64_t kernel,
                       size_t spatial, const Initializer& initializer) {
  Variable weight{.name = name, .initializer = initializer};
  weight.shape = {ends[0]};
  weight.file_shape = {ends[0], ends[1]};
  weight.permutation = {0};
  for (size_t axis = 0; axis < spatial; ++axis) {
    weight.shape.push_back(kernel);
    weight.file_shape.push_back(kernel);
    weight.permutation.push_back(static_cast<int64_t>(axis) + 2);
  }
  weight.shape.push_back(ends[1]);
  weight.permutation.push_back(1);
  weight.file_view = weight.file_shape;
  return weight;
}

}  // namespace

ops::Expression linear(Context& context, const std::string& name, Value* x, int64_t outputs,
                       const LinearOptions& options) {
  const int64_t inputs = channels_of(x);
  Variable weight{.name = name + ".weight", .shape = {outputs, inputs}, .initializer = options.weight};
  if (!options.flattened_from.empty()) {
    const Shape& from = options.flattened_from;
    require(from.size() == 3 && element_count(from) == inputs, ErrorCode::invalid_argument,
            "layer '{}' has {} inputs, flattened from {}", name, inputs, to_string(from));
    weight.file_shape = weight.shape;
    weight.file_view = {outputs, from[2], from[0], from[1]};
    weight.permutation = {0, 2, 3, 1};
  }
  if (options.transposed_in_files) {
    weight.file_shape = weight.file_view = {inputs, outputs};
    weight.permutation = {1, 0};
  }
  Value* y =
      ops::apply("matmul", {x, context.variable(std::move(weight))}, {{"transpose_b", true}}, name)->output();
  if (!options.bias) return y;
  const Initializer start = options.bias_start.value_or(fan_in_uniform(static_cast<double>(inputs)));
  return ops::add(y, context.parameter(name + ".bias", {outputs}, start, false));
}

ops::Expression convolution(Context& context, const std::string& name, Value* x, int64_t outputs,
                            int64_t kernel, const ConvolutionLayerOptions& options) {
  const auto spatial = static_cast<size_t>(x->type().rank() - 2);
  const int64_t inputs = channels_of(x);
  require(inputs % options.groups == 0 && outputs % options.groups == 0, ErrorCode::invalid_argument,
          "layer '{}': {} groups do not divide {} inputs and {} outputs", name, options.groups, inputs,
          outputs);
  Variable weight =
      kernel_weight(name + ".weight", {outputs, inputs / options.groups}, kernel, spatial, options.weight);
  const double fan_in = fans_of(weight.shape).in;
  const auto each = [&](int64_t value) { return std::vector<int64_t>(spatial, value); };
  Value* y = ops::apply("convolution", {x, context.variable(std::move(weight))},
                        {{"strides", each(options.stride)},
                         {"padding_low", each(options.padding)},
                         {"padding_high", each(options.padding)},
                         {"dilations", each(options.dilation)},
                         {"groups", options.groups}},
                        name)
                 ->output();
  if (!options.bias) return y;
  return ops::add(y, context.parameter(name + ".bias", {outputs}, fan_in_uniform(fan_in), false));
}

ops::Expression transposed_convolution(Context& context, const std::string& name, Value* x, int64_t outputs,
                                       int64_t kernel, const TransposedConvolutionOptions& options) {
  const auto spatial = static_cast<size_t>(x->type().rank() - 2);
  Variable weight =
      kernel_weight(name + ".weight", {channels_of(x), outputs}, kernel, spatial, options.weight);
  // As torch counts the fan of these weights: what one input feeds.
  const double fan_in =
      static_cast<double>(element_count(weight.shape)) / static_cast<double>(channels_of(x));
  const auto each = [&](int64_t value) { return std::vector<int64_t>(spatial, value); };
  Value* y = ops::transposed_convolution(
      x, context.variable(std::move(weight)),
      {.strides = each(options.stride), .padding_low = each(options.padding)}, each(options.output_padding));
  if (!options.bias) return y;
  return ops::add(y, context.parameter(name + ".bias", {outputs}, fan_in_uniform(fan_in), false));
}

namespace {

struct NormalizedBatch {
  Value* y;
  Value* mean;      // fp32 [channels], of the batch, as the variance
  Value* variance;  // biased
};

NormalizedBatch normalize_rows(const std::string& name, Value* x, Value* scale, Value* bias, double epsilon) {
  Node* node = ops::apply("batch_norm_training", {x, scale, bias}, {{"epsilon", epsilon}}, name);
  return {node->output(), node->output(1), node->output(2)};
}

// How many ranks' rows are normalized together.
int64_t together(const Ranks& ranks) {
  return ranks.batch_norm_ranks == 0 ? ranks.count : std::min(ranks.batch_norm_ranks, ranks.count);
}

// Of [channels], over the ranks of this one's group. All ranks make one exchange, in which each group has a
// place of its own: what is exchanged is small.
Value* mean_over_group(const Ranks& ranks, Value* mean) {
  const int64_t size = together(ranks);
  const int64_t groups = ranks.count / size;
  if (groups == 1) return ops::all_reduce(mean, {.ranks = ranks.count}, "mean");
  const int64_t own = ranks.rank / size;
  const int64_t channels = mean->shape()[0].value();
  Value* placed = ops::pad(ops::reshape(mean, {1, channels}), {own, 0}, {groups - 1 - own, 0});
  Value* sums = ops::all_reduce(placed, {.ranks = ranks.count}, "sum");
  Value* sum = ops::reshape(ops::slice(sums, {own, 0}, {own + 1, channels}), {channels});
  return ops::multiply(sum, 1 / static_cast<double>(size));
}

// With the statistics of the rows of several ranks, in two passes: the mean, and the mean square distance
// from it.
NormalizedBatch normalize_over_ranks(const Context& context, Value* x, Value* scale, Value* bias,
                                     double epsilon) {
  std::vector<int64_t> axes;
  for (int64_t axis = 0; axis + 1 < x->type().rank(); ++axis) axes.push_back(axis);
  const auto mean_of = [&](Value* values) {
    return mean_over_group(context.ranks(), ops::reduce_mean(values, {.axes = axes}));
  };
  Value* mean = mean_of(x);
  Value* centered = ops::subtract(x, mean);
  Value* variance = mean_of(ops::square(centered));
  Value* factor = ops::multiply(scale, ops::rsqrt(ops::add(variance, epsilon)));
  return {ops::add(ops::multiply(centered, factor), bias), mean, variance};
}

}  // namespace

ops::Expression normalize_batch(Context& context, const std::string& name, Value* x,
                                const BatchNormVariables& variables, const BatchNormOptions& options) {
  const auto& [scale, bias, mean, variance, frozen] = variables;
  if (!context.training() || frozen)
    return ops::batch_norm_inference(x, scale, bias, mean, variance, options.epsilon);
  const int64_t ranks = together(context.ranks());
  const NormalizedBatch batch = ranks > 1 ? normalize_over_ranks(context, x, scale, bias, options.epsilon)
                                          : normalize_rows(name, x, scale, bias, options.epsilon);
  // The running variance is unbiased, the one that normalizes is not (as in PyTorch).
  const double rows = static_cast<double>(x->type().element_count()) / static_cast<double>(channels_of(x));
  const double count = rows * static_cast<double>(ranks);
  const double correction = count > 1 ? count / (count - 1) : 1;
  const double keep = 1 - options.momentum;
  context.update(mean, ops::add(ops::multiply(mean, keep), ops::multiply(batch.mean, options.momentum)));
  context.update(variance, ops::add(ops::multiply(variance, keep),
                                    ops::multiply(batch.variance, options.momentum * correction)));
  return batch.y;
}

ops::Expression batch_norm(Context& context, const std::string& name, Value* x,
                           const BatchNormOptions& options) {
  const int64_t channels = channels_of(x);
  const auto [scale, bias] = affine(context, name, channels, options.scale);
  return normalize_batch(context, name, x,
                         {.scale = scale,
                          .bias = bias,
                          .mean = context.state(name + ".running_mean", {channels}, zeros()),
                          .variance = context.state(name + ".running_var", {channels}, ones()),
                          .frozen = context.is_frozen(name + ".running_mean")},
                         options);
}

ops::Expression layer_norm(Context& context, const std::string& name, Value* x, double epsilon) {
  const auto [scale, bias] = affine(context, name, channels_of(x));
  return ops::layer_norm(x, scale, bias, 1, epsilon);
}

ops::Expression rms_norm(Context& context, const std::string& name, Value* x, double epsilon) {
  return ops::rms_norm(x, context.parameter(name + ".weight", {channels_of(x)}, ones(), false), 1, epsilon);
}

ops::Expression group_norm(Context& context, const std::string& name, Value* x, int64_t groups,
                           double epsilon) {
  const auto [scale, bias] = affine(context, name, channels_of(x));
  return ops::group_norm(x, scale, bias, groups, epsilon);
}

ops::Expression instance_norm(Context& context, const std::string& name, Value* x, double epsilon) {
  return group_norm(context, name, x, channels_of(x), epsilon);
}

ops::Expression embedding(Context& context, const std::string& name, Value* indices, int64_t entries,
                          int64_t width, const EmbeddingOptions& options) {
  return ops::gather(context.variable({.name = name + ".weight",
                                       .shape = {entries, width},
                                       .initializer = options.weight,
                                       .updates_rows = options.updates_rows}),
                     indices);
}

ops::Expression dropout(Context& context, Value* x, double rate) {
  if (!context.training() || rate == 0) return x;
  Value* counter = context.random_counter();
  const int64_t stream = context.next_random_stream();
  if (context.ranks().count == 1) return ops::dropout(x, counter, rate, stream);
  Value* number = context.own_rows(ops::random_uniform(counter, context.whole_batch(x->shape()), stream));
  Value* kept = ops::greater_equal(number, ops::constant_like(number, rate));
  Value* scaled = ops::multiply(x, 1 / (1 - rate));
  return ops::select(kept, scaled, ops::constant_like(scaled, 0));
}

ops::Expression flatten(Value* x) {
  Dimension features(1);
  for (size_t axis = 1; axis < x->shape().size(); ++axis) features = features * x->shape()[axis];
  return ops::reshape(x, {x->shape()[0], features});
}

ops::Expression adaptive_average_pool(Value* x, int64_t size) {
  std::vector<int64_t> window;
  for (size_t axis = 1; axis + 1 < x->shape().size(); ++axis) {
    const int64_t extent = x->shape()[axis].value();
    require(extent % size == 0 || size % extent == 0, ErrorCode::unsupported,
            "adaptive pooling of extent {} to {} is neither a multiple nor a divisor", extent, size);
    if (extent < size) {  // repeat: [N, H, W, C] -> [N, H, r, W, r, C] -> [N, size, size, C]
      require(x->type().rank() == 4, ErrorCode::unsupported, "repeating pooling is for images, '{}' is {}",
              x->name(), to_string(x->type()));
      const int64_t r = size / extent;
      const SymbolicShape& s = x->shape();
      Value* wide =
          ops::broadcast_to(ops::reshape(x, {s[0], s[1], 1, s[2], 1, s[3]}), {s[0], s[1], r, s[2], r, s[3]});
      return ops::reshape(wide, {s[0], size, size, s[3]});
    }
    window.push_back(extent / size);
  }
  const bool identity = std::all_of(window.begin(), window.end(), [](int64_t w) { return w == 1; });
  return identity ? x : ops::average_pool(x, {.window = window});
}

}  // namespace tessera::nn
