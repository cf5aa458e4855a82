// Residual blocks as in ResNets (He et al. 2016, arXiv:1512.03385) and their training: for the kernels and
// fusions that only match whole layers of usual sizes.
#include <algorithm>
#include <cmath>

#include <fmt/format.h>

#include "tessera/base/random.h"
#include "tessera/ops/functions.h"
#include "tessera/passes/differentiate.h"

#include "graph_fuzz/random_graph.h"

namespace tessera::testing {
namespace {

class BlockGenerator {
 public:
  BlockGenerator(uint64_t seed, BlockSize size, bool frozen)
      : random_(seed, 79), size_(size), large_(size != BlockSize::small), frozen_(frozen) {}

  RandomGraph make() {
    Value* x = chance(50) ? stem() : features();
    for (int64_t blocks = planned() ? 1 + below(3) : 1; blocks > 0; --blocks)
      x = chance(75) ? bottleneck(x) : basic(x);
    Value* loss = head(x);
    own_.graph->add_output("loss", loss);
    if (!frozen_) train(loss);
    if (chance(20)) own_.graph->add_output("features", x);
    for (const auto& [state, next] : updates_) own_.graph->add_update(state, next);
    return std::move(own_);
  }

 private:
  int64_t below(int64_t bound) {
    return static_cast<int64_t>(random_.below(counter_++, static_cast<uint64_t>(bound)));
  }
  bool chance(int64_t percent) { return below(100) < percent; }
  int64_t pick(std::initializer_list<int64_t> list) {
    return list.begin()[below(static_cast<int64_t>(list.size()))];
  }

  // Most channels are those of ResNets.
  int64_t narrow() { return chance(80) ? 64 : pick({7, 24, 32, 48, 96, 128}); }
  int64_t wide(int64_t narrow) {
    return chance(80) ? (large_ ? 4 : pick({1, 2})) * narrow : pick({32, 96, 100, 192});
  }

  Value* input(InputRole role, const Shape& shape, double low, double high, DataType type = DataType::fp32) {
    const std::string name = fmt::format("{}_{}", to_string(role), own_.graph->inputs().size());
    Value* value = own_.graph->add_input(role, name, {type, to_symbolic(shape)});
    if (planned()) return value;
    Tensor tensor(type, shape);
    for (int64_t i = 0; i < tensor.size(); ++i) {
      const double number = low + (high - low) * random_.uniform(counter_++);
      tensor.set(i, is_floating(type) ? number : std::floor(number));
    }
    own_.values[name] = std::move(tensor);
    return value;
  }
  Value* parameter(const Shape& shape, double low, double high) {
    parameters_.push_back(input(InputRole::parameter, shape, low, high));
    return parameters_.back();
  }
  Value* state(int64_t channels, double low, double high) {
    return input(InputRole::state, {channels}, low, high);
  }
  static int64_t channels(const Value* x) { return x->shape().back().value(); }

  bool planned() const { return size_ == BlockSize::planned; }

  // Of so many pixels a side.
  int64_t images(int64_t extent) {
    if (planned()) return pick({8, 32, 64, 256});
    if (!large_) return 1 + below(2);
    return (int64_t{66'000} + below(9000)) / (extent * extent);
  }

  Value* features() {
    const int64_t extent = planned() ? pick({7, 14, 28, 56}) : large_ ? pick({28, 56}) : 3 + below(3);
    return input(InputRole::input, {images(extent), extent, extent, wide(narrow())}, -1, 1);
  }

  // Images, a window of many pixels on few channels, and pooling.
  Value* stem() {
    const int64_t extent = planned() ? pick({32, 64, 224}) : large_ ? 112 : 8;
    Value* x =
        input(InputRole::input, {images(extent / 4), extent, extent, chance(70) ? 3 : pick({1, 4})}, -1, 1);
    x = convolution(x, chance(80) ? 64 : pick({32, 48, 128}), pick({3, 7}), 2);
    x = ops::relu(normalized(x));
    if (chance(20)) return x;
    return ops::max_pool(x, {.window = {3, 3}, .strides = {2, 2}, .padding_low = {1, 1}, .padding_high = {}});
  }

  Value* convolution(Value* x, int64_t outputs, int64_t window, int64_t stride = 1) {
    const int64_t inputs = channels(x);
    const double bound = std::sqrt(3.0 / static_cast<double>(window * window * inputs));
    Value* weight = parameter({outputs, window, window, inputs}, -bound, bound);
    const int64_t padding = window / 2;
    Value* y = ops::convolution(x, weight, {.strides = {stride, stride}, .padding_low = {padding, padding}});
    if (!chance(8)) return y;
    const Node& plain = *y->producer();
    return ops::apply("convolution", {x, weight, parameter({outputs}, -1, 1)}, plain.attributes())->output();
  }

  Value* normalized(Value* x) {
    const int64_t c = channels(x);
    Value* scale = parameter({c}, 0.5, 1.5);
    Value* bias = parameter({c}, -0.5, 0.5);
    Value* mean = state(c, -0.5, 0.5);
    Value* variance = state(c, 0.5, 1.5);
    if (frozen_ || chance(4)) return ops::batch_norm_inference(x, scale, bias, mean, variance);
    const ops::BatchNorm norm = ops::batch_norm_training(x, scale, bias, 1e-3);
    for (const auto& [running, own] : {std::pair(mean, norm.mean), std::pair(variance, norm.variance)}) {
      if (!chance(5))
        updates_.push_back({running, ops::add(ops::multiply(running, 0.9), ops::multiply(own, 0.1))});
    }
    return norm.result;
  }

  Value* residual(Value* x, const Value* y, int64_t stride) {
    const bool projects = stride > 1 || channels(x) != channels(y) || chance(20);
    return projects ? normalized(convolution(x, channels(y), 1, stride)) : x;
  }

  Value* sum(Value* y, Value* x) { return ops::relu(chance(50) ? ops::add(y, x) : ops::add(x, y)); }

  Value* bottleneck(Value* x) {
    const int64_t inner = narrow();
    const int64_t stride = pick({1, 1, 1, 2});
    Value* y = ops::relu(normalized(convolution(x, inner, 1)));
    if (large_ || chance(50)) y = ops::relu(normalized(convolution(y, inner, 3, stride)));
    const int64_t made = y->shape()[1] == x->shape()[1] ? 1 : stride;
    y = normalized(convolution(y, chance(60) ? channels(x) : wide(inner), 1));
    return sum(y, residual(x, y, made));
  }

  Value* basic(Value* x) {
    const int64_t stride = pick({1, 1, 2});
    const int64_t window = large_ ? 3 : pick({1, 3});
    Value* y = ops::relu(normalized(convolution(x, narrow(), window, stride)));
    y = normalized(convolution(y, chance(60) ? channels(x) : narrow(), window));
    return sum(y, residual(x, y, y->shape()[1] == x->shape()[1] ? 1 : stride));
  }

  Value* head(Value* x) {
    Value* pooled = ops::global_average_pool(x);
    const int64_t classes = pick({10, 16});
    const double bound = 1 / std::sqrt(static_cast<double>(channels(x)));
    Value* logits = ops::matmul(pooled, parameter({channels(x), classes}, -bound, bound));
    logits = ops::add(logits, parameter({classes}, -1, 1));
    own_.graph->add_output("logits", logits);
    const int64_t count = x->shape()[0].value();
    Value* labels = input(InputRole::input, {count}, 0, static_cast<double>(classes), DataType::int32);
    return ops::reduce_mean(ops::cross_entropy(logits, labels));
  }

  // Gradient descent with momentum, of all parameters or without the first layers'.
  void train(Value* loss) {
    std::vector<Value*> trained = parameters_;
    if (chance(15))
      trained.erase(trained.begin(), trained.begin() + below(static_cast<int64_t>(trained.size())));
    const bool momentum = chance(50);
    const std::vector<Value*> gradients = differentiate(*own_.graph, loss, trained);
    for (size_t i = 0; i < trained.size(); ++i) {
      Value* step = gradients[i];
      if (momentum) {
        Value* velocity = input(InputRole::state, trained[i]->type().static_shape(), -0.01, 0.01);
        step = ops::add(ops::multiply(velocity, 0.9), step);
        updates_.push_back({velocity, step});
      }
      updates_.push_back({trained[i], ops::subtract(trained[i], ops::multiply(step, 0.1))});
    }
  }

  Random random_;
  BlockSize size_;
  bool large_;
  bool frozen_;
  uint64_t counter_ = 0;
  RandomGraph own_{std::make_unique<Graph>("block"), {}};
  std::vector<Value*> parameters_;
  std::vector<Graph::Update> updates_;
};

}  // namespace

RandomGraph random_block(uint64_t seed, BlockSize size, bool frozen) {
  return BlockGenerator(seed, size, frozen).make();
}

}  // namespace tessera::testing
