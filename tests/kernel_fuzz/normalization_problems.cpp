// Normalizations with their gradients, softmax, dropout and the losses: what sums over rows or channels.
#include <algorithm>

#include "kernel_fuzz/problem_maker.h"

namespace tessera::testing {
namespace {

DataType statistics(DataType type) {
  return type == DataType::fp64 ? DataType::fp64 : DataType::fp32;
}

struct Activations {
  DataType type;
  Shape shape;
  double low, high;
};

// [N, ..., C]; a mean that is at times far from 0 beside the deviation.
Activations activations(ProblemMaker& maker, int64_t least_rank = 2) {
  Draw& draw = maker.draw();
  Activations own{maker.floating(), maker.shape(least_rank, 4, 3000), -2, 3};
  if (draw.chance(15)) {
    const double offset = draw.uniform(-30, 30);
    own.low += offset;
    own.high += offset;
  }
  return own;
}

double epsilon(Draw& draw) {
  return draw.chance(50) ? 1e-5 : 1e-2;
}

// Statistics as the forward half finds them: those of the first node, which stays unused.
Value* made(ProblemMaker& maker, const Node& node, size_t output) {
  std::vector<const Tensor*> contents;
  for (const Value* input : node.inputs()) contents.push_back(&maker.contents(input));
  return maker.input(run_reference(node, contents)[output]);
}

void make_batch_norm_training(ProblemMaker& maker) {
  const Activations own = activations(maker);
  const Shape channels{own.shape.back()};
  const DataType type = statistics(own.type);
  ops::batch_norm_training(maker.input(own.type, own.shape, own.low, own.high),
                           maker.input(type, channels, 0.5, 2), maker.input(type, channels),
                           epsilon(maker.draw()));
}

void make_batch_norm_inference(ProblemMaker& maker) {
  const Activations own = activations(maker);
  const Shape channels{own.shape.back()};
  const DataType type = statistics(own.type);
  ops::batch_norm_inference(maker.input(own.type, own.shape, own.low, own.high),
                            maker.input(type, channels, 0.5, 2), maker.input(type, channels),
                            maker.input(type, channels, own.low, own.high),
                            maker.input(type, channels, 0.1, 2), epsilon(maker.draw()));
}

void make_batch_norm_gradient(ProblemMaker& maker) {
  const Activations own = activations(maker);
  const Shape channels{own.shape.back()};
  const DataType type = statistics(own.type);
  Value* x = maker.finite_input(own.type, own.shape, own.low, own.high);
  Value* scale = maker.finite_input(type, channels, 0.5, 2);
  Value* bias = maker.finite_input(type, channels, -1, 1);
  const double small = epsilon(maker.draw());
  const Node& forward = *ops::batch_norm_training(x, scale, bias, small).result->producer();
  ops::batch_norm_gradient(maker.input(own.type, own.shape), x, scale, made(maker, forward, 1),
                           made(maker, forward, 2), small);
}

// The last axes, at least one, all but the first at most.
int64_t normalized_axes(Draw& draw, const Shape& shape) {
  return draw.chance(60) ? 1 : draw.between(1, static_cast<int64_t>(shape.size()) - 1);
}

Shape last_axes(const Shape& shape, int64_t axes) {
  return {shape.end() - axes, shape.end()};
}

void make_layer_norm(ProblemMaker& maker) {
  const Activations own = activations(maker);
  const int64_t axes = normalized_axes(maker.draw(), own.shape);
  const DataType type = statistics(own.type);
  Value* x = maker.input(own.type, own.shape, own.low, own.high);
  Value* scale = maker.input(type, last_axes(own.shape, axes), 0.5, 2);
  Value* bias = maker.draw().chance(75) ? maker.input(type, last_axes(own.shape, axes)) : nullptr;
  ops::apply("layer_norm", {x, scale, bias},
             {{"axes", axes}, {"epsilon", epsilon(maker.draw())}, {"centered", maker.draw().chance(70)}});
}

void make_layer_norm_gradient(ProblemMaker& maker) {
  const Activations own = activations(maker);
  const int64_t axes = normalized_axes(maker.draw(), own.shape);
  const DataType type = statistics(own.type);
  Value* x = maker.finite_input(own.type, own.shape, own.low, own.high);
  Value* scale = maker.finite_input(type, last_axes(own.shape, axes), 0.5, 2);
  const bool centered = maker.draw().chance(70);
  const Node& forward = *ops::apply(
      "layer_norm", {x, scale}, {{"axes", axes}, {"epsilon", epsilon(maker.draw())}, {"centered", centered}});
  ops::layer_norm_gradient(maker.input(own.type, own.shape), x, scale, made(maker, forward, 1),
                           made(maker, forward, 2), axes, centered);
}

int64_t divisor(Draw& draw, int64_t channels) {
  if (channels == 0 || draw.chance(20)) return std::max<int64_t>(channels, 1);
  int64_t groups = draw.between(1, channels);
  while (channels % groups != 0) --groups;
  return groups;
}

void make_group_norm(ProblemMaker& maker) {
  const Activations own = activations(maker, 3);
  const Shape channels{own.shape.back()};
  const DataType type = statistics(own.type);
  ops::group_norm(maker.input(own.type, own.shape, own.low, own.high), maker.input(type, channels, 0.5, 2),
                  maker.input(type, channels), divisor(maker.draw(), channels[0]), epsilon(maker.draw()));
}

void make_group_norm_gradient(ProblemMaker& maker) {
  const Activations own = activations(maker, 3);
  const Shape channels{own.shape.back()};
  const DataType type = statistics(own.type);
  const int64_t groups = divisor(maker.draw(), channels[0]);
  Value* x = maker.finite_input(own.type, own.shape, own.low, own.high);
  Value* scale = maker.finite_input(type, channels, 0.5, 2);
  Value* bias = maker.finite_input(type, channels, -1, 1);
  const Node& forward = *ops::group_norm(x, scale, bias, groups, epsilon(maker.draw()))->producer();
  ops::group_norm_gradient(maker.input(own.type, own.shape), x, scale, made(maker, forward, 1),
                           made(maker, forward, 2), groups);
}

// Logits as a diverging network makes them are far from 0 and close to each other.
Value* logits(ProblemMaker& maker, DataType type, const Shape& shape) {
  Draw& draw = maker.draw();
  const double width = draw.chance(20) ? draw.uniform(5, 60) : 3;
  const bool far = draw.chance(25) && type != DataType::fp16;
  const double middle = far ? draw.pick(std::vector<double>{-1e6, -1e4, 500, 1e4, 1e6}) : 0;
  return maker.input(type, shape, middle - width, middle + width);
}

int64_t any_axis(Draw& draw, const Shape& shape) {
  const auto rank = static_cast<int64_t>(shape.size());
  return draw.chance(60) ? -1 : draw.between(-rank, rank - 1);
}

void make_softmax(ProblemMaker& maker) {
  const Shape shape = maker.shape(1, 4);
  ops::softmax(logits(maker, maker.floating(), shape), any_axis(maker.draw(), shape));
}

void make_log_softmax(ProblemMaker& maker) {
  const Shape shape = maker.shape(1, 4);
  ops::log_softmax(logits(maker, maker.floating(), shape), any_axis(maker.draw(), shape));
}

struct LossInputs {
  Value* logits = nullptr;
  Value* labels = nullptr;
  ops::CrossEntropyOptions options;
};

LossInputs loss_inputs(ProblemMaker& maker) {
  Draw& draw = maker.draw();
  Shape shape = maker.shape(2, 2);
  shape[1] = std::max<int64_t>(shape[1], 1);
  LossInputs own;
  own.logits = logits(maker, maker.floating(), shape);
  if (draw.chance(30)) own.options.classes = draw.between(1, shape[1]);
  const int64_t classes = own.options.classes == 0 ? shape[1] : own.options.classes;
  own.labels =
      maker.finite_input(maker.type_of(kIndexTypes), {shape[0]}, 0, static_cast<double>(classes - 1));
  if (draw.chance(40)) own.options.smoothing = draw.uniform(0, 1);
  if (draw.chance(40)) own.options.ignored_label = draw.below(classes);
  return own;
}

void make_cross_entropy(ProblemMaker& maker) {
  const LossInputs own = loss_inputs(maker);
  ops::cross_entropy(own.logits, own.labels, own.options);
}

void make_cross_entropy_gradient(ProblemMaker& maker) {
  const LossInputs own = loss_inputs(maker);
  Value* gradient = maker.input(statistics(own.logits->data_type()), own.labels->type().static_shape());
  ops::cross_entropy_gradient(own.logits, own.labels, gradient, own.options);
}

}  // namespace

NodeMakers normalization_makers() {
  return {{"batch_norm_training", make_batch_norm_training},
          {"batch_norm_inference", make_batch_norm_inference},
          {"batch_norm_gradient", make_batch_norm_gradient},
          {"layer_norm", make_layer_norm},
          {"layer_norm_gradient", make_layer_norm_gradient},
          {"group_norm", make_group_norm},
          {"group_norm_gradient", make_group_norm_gradient},
          {"softmax", make_softmax},
          {"log_softmax", make_log_softmax},
          {"cross_entropy", make_cross_entropy},
          {"cross_entropy_gradient", make_cross_entropy_gradient}};
}

}  // namespace tessera::testing
