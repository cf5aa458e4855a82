// The functions of functions.h that layers are made of; functions.cpp has the rest.
#include <cmath>

#include "tessera/graph/operator.h"
#include "tessera/ops/functions.h"
#include "tessera/ops/rms_norm.h"

namespace tessera::ops {
namespace {

Value* one(const std::string& operator_name, const std::vector<Value*>& inputs, Attributes attributes = {}) {
  return apply(operator_name, inputs, std::move(attributes))->output();
}

Attributes reduce_attributes(const ReduceOptions& options) {
  return {{"axes", options.axes}, {"keep_dimensions", options.keep_dimensions}};
}

// Missing options become explicit, so that equal convolutions have equal attributes.
Attributes convolution_attributes(const ConvolutionOptions& options, int64_t spatial) {
  const auto filled = [&](const std::vector<int64_t>& values, int64_t fallback) {
    return values.empty() ? std::vector<int64_t>(static_cast<size_t>(spatial), fallback) : values;
  };
  const std::vector<int64_t> low = filled(options.padding_low, 0);
  return {{"strides", filled(options.strides, 1)},
          {"padding_low", low},
          {"padding_high", options.padding_high.empty() ? low : options.padding_high},
          {"dilations", filled(options.dilations, 1)},
          {"groups", options.groups}};
}

Attributes pool_attributes(const PoolOptions& options) {
  const std::vector<int64_t> low =
      options.padding_low.empty() ? std::vector<int64_t>(options.window.size(), 0) : options.padding_low;
  return {{"window", options.window},
          {"strides", options.strides.empty() ? options.window : options.strides},
          {"padding_low", low},
          {"padding_high", options.padding_high.empty() ? low : options.padding_high}};
}

Attributes attention_attributes(Value* q, const AttentionOptions& options) {
  const auto usual = [&] { return 1 / std::sqrt(static_cast<double>(q->shape().back().value())); };
  return {{"scale", options.scale.has_value() ? *options.scale : usual()}, {"causal", options.causal}};
}

Attributes loss_attributes(const CrossEntropyOptions& options) {
  return {{"smoothing", options.smoothing},
          {"ignored_label", options.ignored_label},
          {"classes", options.classes}};
}

}  // namespace

Value* reduce_sum(Value* x, const ReduceOptions& options) {
  return one("reduce_sum", {x}, reduce_attributes(options));
}
Value* reduce_mean(Value* x, const ReduceOptions& options) {
  return one("reduce_mean", {x}, reduce_attributes(options));
}
Value* reduce_max(Value* x, const ReduceOptions& options) {
  return one("reduce_max", {x}, reduce_attributes(options));
}
Value* reduce_min(Value* x, const ReduceOptions& options) {
  return one("reduce_min", {x}, reduce_attributes(options));
}
Value* reduce_product(Value* x, const ReduceOptions& options) {
  return one("reduce_product", {x}, reduce_attributes(options));
}
Value* argmax(Value* x, int64_t axis, bool keep_dimensions) {
  return one("argmax", {x}, {{"axis", axis}, {"keep_dimensions", keep_dimensions}});
}

Value* matmul(Value* a, Value* b, const MatmulOptions& options) {
  return one("matmul", {a, b}, {{"transpose_a", options.transpose_a}, {"transpose_b", options.transpose_b}});
}

Value* convolution(Value* x, Value* weight, const ConvolutionOptions& options) {
  return one("convolution", {x, weight}, convolution_attributes(options, x->type().rank() - 2));
}
Value* convolution_data_gradient(Value* output_gradient, Value* weight, SymbolicShape input_shape,
                                 const ConvolutionOptions& options) {
  Attributes attributes = convolution_attributes(options, output_gradient->type().rank() - 2);
  attributes.set("input_shape", std::move(input_shape));
  return one("convolution_data_gradient", {output_gradient, weight}, std::move(attributes));
}
Value* convolution_weight_gradient(Value* x, Value* output_gradient, SymbolicShape weight_shape,
                                   const ConvolutionOptions& options) {
  Attributes attributes = convolution_attributes(options, x->type().rank() - 2);
  attributes.set("weight_shape", std::move(weight_shape));
  return one("convolution_weight_gradient", {x, output_gradient}, std::move(attributes));
}
Value* transposed_convolution(Value* x, Value* weight, const ConvolutionOptions& options,
                              const std::vector<int64_t>& output_padding) {
  const int64_t spatial = x->type().rank() - 2;
  Attributes attributes = convolution_attributes(options, spatial);
  attributes.set("output_padding", output_padding.empty()
                                       ? std::vector<int64_t>(static_cast<size_t>(spatial), 0)
                                       : output_padding);
  return one("transposed_convolution", {x, weight}, std::move(attributes));
}

BatchNorm batch_norm_training(Value* x, Value* scale, Value* bias, double epsilon) {
  Node* node = apply("batch_norm_training", {x, scale, bias}, {{"epsilon", epsilon}});
  return {node->output(0), node->output(1), node->output(2)};
}
Value* batch_norm_inference(Value* x, Value* scale, Value* bias, Value* mean, Value* variance,
                            double epsilon) {
  return one("batch_norm_inference", {x, scale, bias, mean, variance}, {{"epsilon", epsilon}});
}
Value* layer_norm(Value* x, Value* scale, Value* bias, int64_t axes, double epsilon) {
  return one("layer_norm", {x, scale, bias}, {{"axes", axes}, {"epsilon", epsilon}});
}
Value* rms_norm(Value* x, Value* scale, int64_t axes, double epsilon) {
  return one("layer_norm", {x, scale}, {{"axes", axes}, {"epsilon", epsilon}, {"centered", false}});
}
Value* group_norm(Value* x, Value* scale, Value* bias, int64_t groups, double epsilon) {
  return one("group_norm", {x, scale, bias}, {{"groups", groups}, {"epsilon", epsilon}});
}
NormGradients batch_norm_gradient(Value* output_gradient, Value* x, Value* scale, Value* mean,
                                  Value* variance, double epsilon) {
  Node* node =
      apply("batch_norm_gradient", {output_gradient, x, scale, mean, variance}, {{"epsilon", epsilon}});
  return {node->output(0), node->output(1), node->output(2)};
}
NormGradients layer_norm_gradient(Value* output_gradient, Value* x, Value* scale, Value* mean,
                                  Value* inverse_deviation, int64_t axes, bool centered) {
  Node* node = apply("layer_norm_gradient", {output_gradient, x, scale, mean, inverse_deviation},
                     {{"axes", axes}, {"centered", centered}});
  return {node->output(0), node->output(1), node->output(2)};
}
NormGradients group_norm_gradient(Value* output_gradient, Value* x, Value* scale, Value* mean,
                                  Value* inverse_deviation, int64_t groups) {
  Node* node = apply("group_norm_gradient", {output_gradient, x, scale, mean, inverse_deviation},
                     {{"groups", groups}});
  return {node->output(0), node->output(1), node->output(2)};
}
Value* softmax(Value* x, int64_t axis) {
  return one("softmax", {x}, {{"axis", axis}});
}
Value* log_softmax(Value* x, int64_t axis) {
  return one("log_softmax", {x}, {{"axis", axis}});
}

Attention attention(Value* q, Value* k, Value* v, const AttentionOptions& options) {
  Node* node =
      apply("attention", {q, k, v, options.bias, options.key_lengths}, attention_attributes(q, options));
  return {node->output(0), node->output(1)};
}
AttentionGradients attention_gradient(Value* output_gradient, Value* q, Value* k, Value* v, Value* y,
                                      Value* log_sum, const AttentionOptions& options) {
  Node* node =
      apply("attention_gradient", {output_gradient, q, k, v, y, log_sum, options.bias, options.key_lengths},
            attention_attributes(q, options));
  return {node->output(0), node->output(1), node->output(2)};
}

Value* max_pool(Value* x, const PoolOptions& options) {
  return one("max_pool", {x}, pool_attributes(options));
}
Value* average_pool(Value* x, const PoolOptions& options) {
  Attributes attributes = pool_attributes(options);
  attributes.set("count_padding", options.count_padding);
  return one("average_pool", {x}, std::move(attributes));
}
Value* global_average_pool(Value* x) {
  std::vector<int64_t> axes;
  for (int64_t axis = 1; axis + 1 < x->type().rank(); ++axis) axes.push_back(axis);
  return reduce_mean(x, {.axes = axes});
}
Value* max_pool_gradient(Value* output_gradient, Value* position, SymbolicShape input_shape,
                         const PoolOptions& options) {
  Attributes attributes = pool_attributes(options);
  attributes.set("input_shape", std::move(input_shape));
  return one("max_pool_gradient", {output_gradient, position}, std::move(attributes));
}
Value* average_pool_gradient(Value* output_gradient, SymbolicShape input_shape, const PoolOptions& options) {
  Attributes attributes = pool_attributes(options);
  attributes.set("count_padding", options.count_padding);
  attributes.set("input_shape", std::move(input_shape));
  return one("average_pool_gradient", {output_gradient}, std::move(attributes));
}

Value* cross_entropy(Value* logits, Value* labels, const CrossEntropyOptions& options) {
  return one("cross_entropy", {logits, labels}, loss_attributes(options));
}
Value* cross_entropy_gradient(Value* logits, Value* labels, Value* loss_gradient,
                              const CrossEntropyOptions& options) {
  return one("cross_entropy_gradient", {logits, labels, loss_gradient}, loss_attributes(options));
}
int64_t class_count(const Attributes& cross_entropy, int64_t columns) {
  const int64_t classes = cross_entropy.integer("classes");
  return classes == 0 ? columns : classes;
}
Value* binary_cross_entropy(Value* logits, Value* targets) {
  return one("binary_cross_entropy", {logits, targets});
}

}  // namespace tessera::ops
