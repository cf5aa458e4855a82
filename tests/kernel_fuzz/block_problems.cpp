#include "kernel_fuzz/block_problems.h"

#include <algorithm>

#include "tessera/base/error.h"
#include "tessera/device/common/convolution_patterns.h"
#include "tessera/ops/functions.h"
#include "tessera/passes/differentiate.h"

#include "kernel_fuzz/pattern_problems.h"

namespace tessera::testing {
namespace {

constexpr int64_t kMostProducts = 1000000;  // of one convolution

Shape shape_of(const Value* value) {
  return value->type().static_shape();
}

int64_t channels(const Value* value) {
  return shape_of(value).back();
}

class Block {
 public:
  explicit Block(Draw& draw) : draw_(draw), maker_(draw) {}

  ProblemMaker& maker() { return maker_; }

  void build() {
    Value* result = nullptr;
    switch (draw_.below(6)) {
      case 0:
        result = first_layer();
        break;
      case 1:
        result = windows();
        break;
      case 2:
        result = pooled();
        break;
      default:
        result = bottleneck();
    }
    maker_.graph().add_output("result", result);
    if (draw_.chance(60)) add_gradients(result);
  }

 private:
  Value* input(const Shape& shape) {
    sources_.push_back(maker_.input(DataType::fp32, shape));
    return sources_.back();
  }
  Value* parameter(const Shape& shape, double low = -1, double high = 1) {
    sources_.push_back(maker_.input(DataType::fp32, shape, low, high, InputRole::parameter));
    return sources_.back();
  }

  Value* keep(Value* value) {
    if (draw_.chance(10))
      maker_.graph().add_output("kept_" + std::to_string(maker_.graph().outputs().size()), value);
    return value;
  }

  Value* batch_norm(Value* x) {
    const ops::BatchNorm norm =
        ops::batch_norm_training(x, parameter({channels(x)}, 0.5, 2), parameter({channels(x)}), 1e-2);
    if (draw_.chance(80)) maker_.graph().add_output(norm.mean->name(), norm.mean);
    if (draw_.chance(80)) maker_.graph().add_output(norm.variance->name(), norm.variance);
    return keep(norm.result);
  }

  Value* convolve(Value* x, int64_t outputs, const std::vector<int64_t>& window,
                  const ops::ConvolutionOptions& options) {
    Value* weight = parameter({outputs, window[0], window[1], channels(x)}, -0.3, 0.3);
    if (draw_.chance(92)) return keep(ops::convolution(x, weight, options));
    return ops::apply("convolution", {x, weight, parameter({outputs})},
                      {{"strides", options.strides},
                       {"padding_low", options.padding_low},
                       {"padding_high", options.padding_high},
                       {"dilations", options.dilations},
                       {"groups", options.groups}})
        ->output();
  }
  Value* pointwise(Value* x, int64_t outputs) {
    return convolve(x, outputs, {1, 1}, {{1, 1}, {0, 0}, {0, 0}, {1, 1}, 1});
  }

  // The first of a residual network's kind, before another: the end of a block, all of the next one.
  Value* bottleneck() {
    static const std::vector<int64_t> kWide{64, 128, 128, 256, 256, 256, 512, 512, 96, 192, 320, 1024};
    static const std::vector<int64_t> kNarrow{64, 64, 64, 128, 128, 256, 256, 512, 7, 32, 48, 96, 100, 192};
    const int64_t wide = draw_.pick(kWide), narrow = draw_.pick(kNarrow);
    const int64_t most = std::clamp<int64_t>(kMostProducts / (wide * narrow), 1, 150);
    const int64_t width = draw_.between(1, std::min<int64_t>(most, 13));
    const int64_t height = draw_.between(1, std::clamp<int64_t>(most / width, 1, 13));
    const int64_t images = draw_.between(1, std::clamp<int64_t>(most / width / height, 1, 3));
    const auto narrow_input = [&] { return input({images, height, width, 8}); };
    Value* y = batch_norm(pointwise(narrow_input(), wide));
    const int64_t other = draw_.below(10);
    if (other < 4) y = ops::add(y, input(shape_of(y)));
    if (other > 6) y = ops::add(y, batch_norm(pointwise(narrow_input(), wide)));
    if (draw_.chance(92)) y = keep(ops::relu(y));
    Value* z = batch_norm(pointwise(y, narrow));
    if (draw_.chance(25)) return draw_.chance(50) ? ops::relu(z) : z;
    z = ops::relu(z);
    z = batch_norm(pointwise(z, wide));
    if (draw_.chance(85)) z = ops::add(z, y);
    return ops::relu(z);
  }

  // Of images, which the network does not change.
  Value* first_layer() {
    const int64_t inputs = draw_.between(1, 5);
    const int64_t outputs = draw_.pick(std::vector<int64_t>{32, 64, 64, 128, 48, 256});
    std::vector<int64_t> window{draw_.between(1, 7), 0};
    window[1] = draw_.chance(70) ? window[0] : draw_.between(1, 9);
    const int64_t stride = draw_.between(1, 4);
    ops::ConvolutionOptions options{{stride, stride}, {}, {}, {1, 1}, 1};
    Shape images{draw_.between(1, 3)};
    int64_t pixels = images[0];
    for (const int64_t own : window) {
      options.padding_low.push_back(draw_.between(0, own / 2 + 1));
      options.padding_high.push_back(draw_.chance(70) ? options.padding_low.back()
                                                      : draw_.between(0, own / 2 + 1));
      const int64_t most = std::clamp<int64_t>(
          kMostProducts / (pixels * outputs * window[0] * window[1] * inputs) * stride, own, 48);
      images.push_back(draw_.chance(60) ? std::max<int64_t>(draw_.between(own, most) / 8 * 8, own)
                                        : draw_.between(own, most));
      pixels *= images.back() / stride + 1;
    }
    images.push_back(inputs);
    Value* x = maker_.input(DataType::fp32, images);
    Value* y = convolve(x, outputs, window, options);
    if (draw_.chance(30)) return ops::relu(ops::add(y, parameter({outputs})));
    if (draw_.chance(20)) return y;
    y = batch_norm(y);
    if (draw_.chance(80)) y = ops::relu(y);
    return draw_.chance(50) ? pool(y) : y;
  }

  Value* windows() {
    const int64_t inputs = 64 * draw_.between(1, 2), outputs = 64 * draw_.between(1, 2);
    const int64_t width = draw_.between(14, 35);
    const int64_t rows = std::clamp<int64_t>(2 * kMostProducts / (inputs * outputs * 9 * width), 1, 8);
    const int64_t height = draw_.between(1, rows);
    Value* y = convolve(input({std::max<int64_t>(rows / height, 1), height, width, inputs}), outputs, {3, 3},
                        {{1, 1}, {1, 1}, {1, 1}, {1, 1}, 1});
    return draw_.chance(50) ? ops::relu(batch_norm(y)) : y;
  }

  Value* pool(Value* x) {
    ops::PoolOptions options;
    for (size_t axis = 1; axis + 1 < shape_of(x).size(); ++axis) {
      const int64_t window = draw_.chance(50) ? 3 : draw_.between(1, 5);
      const int64_t extent = shape_of(x)[axis];
      options.window.push_back(std::min(window, extent));
      options.strides.push_back(draw_.chance(60) ? 2 : draw_.between(1, 4));
      options.padding_low.push_back(draw_.between(0, options.window.back() - 1));
      options.padding_high.push_back(draw_.between(0, options.window.back() - 1));
    }
    return ops::max_pool(x, options);
  }

  Value* pooled() {
    Shape x{draw_.between(1, 3)};
    for (int64_t axes = draw_.between(1, 2); axes > 0; --axes) x.push_back(draw_.between(1, 24));
    x.push_back(draw_.chance(75) ? 8 * draw_.between(1, 12) : draw_.between(1, 70));
    return pool(ops::relu(batch_norm(input(x))));
  }

  void add_gradients(Value* result) {
    Value* weights = maker_.input(DataType::fp32, shape_of(result));
    Value* loss = ops::reduce_sum(ops::multiply(result, weights));
    const std::vector<Value*> gradients = differentiate(maker_.graph(), loss, sources_);
    for (size_t i = 0; i < gradients.size(); ++i)
      maker_.graph().add_output("gradient_" + std::to_string(i), gradients[i]);
  }

  Draw& draw_;
  ProblemMaker maker_;
  std::vector<Value*> sources_;
};

}  // namespace

PassTarget EagerDevice::pass_target(const PassOptions& options) const {
  constexpr int64_t kMostOfBoth = 128;  // outputs of which the weight gradient is made too
  const auto makes_both = [](const Node& data_gradient, size_t) {
    return data_gradient.input(0)->shape().back().value() <= kMostOfBoth;
  };
  const auto always = [](const Node&, size_t) { return true; };
  PassTarget target = CudaDevice::pass_target(options);
  for (FusionPattern& pattern : target.patterns) {
    const bool alternative = pattern.alternative;
    if (pattern.kind == "summed_gradients")
      pattern = alternative ? backend::summed_data_gradient_pattern(always)
                            : backend::summed_gradients_pattern(makes_both, always);
    pattern.alternative = alternative;
    pattern.worth = nullptr;
  }
  return target;
}

std::vector<KernelProblem> draw_cuda_problems(uint64_t seed, const EagerDevice& device) {
  if (seed % 2 == 0) return draw_problems(seed, device);
  Draw draw(seed);
  Block block(draw);
  block.build();
  return problems_of_network(draw, block.maker(), device);
}

}  // namespace tessera::testing
