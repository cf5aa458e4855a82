#include "tessera/tasks/gan.h"

#include <algorithm>
#include <cmath>

#include <fmt/format.h>

#include "tessera/base/error.h"
#include "tessera/nn/layers.h"
#include "tessera/report/pictures.h"

#include "tasks/drawing.h"

namespace tessera::tasks {
namespace {

constexpr size_t kShown = 64;  // samples in a report
constexpr int64_t kKernel = 4;

Value* generator(nn::Context& context, const GanOptions& options, const Dimension& batch) {
  const auto scope = context.scope("generator");
  const int64_t size = options.image_size / 4;
  const SymbolicShape shape = context.whole_batch({batch, options.noise});
  Value* noise =
      context.own_rows(ops::random_normal(context.random_counter(), shape, context.next_random_stream()));
  const nn::Initializer start = nn::normal(0.02);
  Value* x = nn::linear(context, "fc", noise, size * size * 2 * options.width, {.weight = start});
  x = ops::reshape(x, {batch, size, size, 2 * options.width});
  x = ops::relu(nn::batch_norm(context, "bn0", x));
  x = nn::transposed_convolution(context, "conv1", x, options.width, kKernel,
                                 {.stride = 2, .padding = 1, .bias = false, .weight = start});
  x = ops::relu(nn::batch_norm(context, "bn1", x));
  return ops::tanh(nn::transposed_convolution(context, "conv2", x, options.channels, kKernel,
                                              {.stride = 2, .padding = 1, .weight = start}));
}

// One logit for each picture: whether it is real.
Value* discriminator(nn::Context& context, const GanOptions& options, Value* x) {
  const auto scope = context.scope("discriminator");
  const nn::Initializer start = nn::normal(0.02);
  const nn::ConvolutionLayerOptions strided{.stride = 2, .padding = 1, .weight = start};
  x = ops::leaky_relu(nn::convolution(context, "conv1", x, options.width, kKernel, strided), 0.2);
  x = nn::batch_norm(context, "bn2",
                     nn::convolution(context, "conv2", x, 2 * options.width, kKernel, strided));
  return nn::linear(context, "fc", nn::flatten(ops::leaky_relu(x, 0.2)), 1, {.weight = start});
}

// Against one target for all.
nn::Measure loss(const std::string& name, Value* logits, double target) {
  Value* targets = ops::broadcast_to(ops::constant_like(logits, target), logits->shape());
  return nn::mean_of(name, ops::binary_cross_entropy(logits, targets));
}

nn::Training training(const GanOptions& options, nn::Context& context, Value* given) {
  Value* images = nn::normalize_images(given, options.images);
  Value* samples = generator(context, options, images->shape()[0]);
  Value* of_samples = discriminator(context, options, samples);
  nn::Training training{.objectives = {loss("generator", of_samples, 1)}};
  if (context.trains("discriminator")) {
    const nn::Measure real = loss("real", discriminator(context, options, images), 1);
    training.objectives.push_back(nn::total_of("discriminator", {real, loss("samples", of_samples, 0)}));
  }
  return training;
}

// Mean and deviation of each pixel, of pictures in 0..1.
class Pixels {
 public:
  // Of bytes, or of values in -1..1.
  void add(const Tensor& pictures, int64_t count) {
    const bool bytes = pictures.data_type() == DataType::uint8;
    const int64_t size = pictures.size() / pictures.shape()[0];
    sums_.resize(static_cast<size_t>(size));
    squares_.resize(static_cast<size_t>(size));
    for (int64_t i = 0; i < count * size; ++i) {
      const double value = bytes ? pictures.at(i) / 255 : (pictures.at(i) + 1) / 2;
      sums_[static_cast<size_t>(i % size)] += value;
      squares_[static_cast<size_t>(i % size)] += value * value;
    }
    count_ += static_cast<double>(count);
  }
  void add(const Pixels& other) {
    sums_.resize(std::max(sums_.size(), other.sums_.size()));
    squares_.resize(sums_.size());
    for (size_t i = 0; i < other.sums_.size(); ++i) {
      sums_[i] += other.sums_[i];
      squares_[i] += other.squares_[i];
    }
    count_ += other.count_;
  }
  // [2, pixels]: sums and sums of squares; and of how many pictures.
  void save(Feeds& state, const std::string& name) const {
    Tensor sums(DataType::fp64, {2, std::ssize(sums_)});
    std::ranges::copy(sums_, sums.data<double>().begin());
    std::ranges::copy(squares_, sums.data<double>().begin() + std::ssize(sums_));
    state[name] = sums;
    state[name + "_count"] = Tensor::scalar(DataType::fp64, count_);
  }
  static Pixels load(const Feeds& state, const std::string& name) {
    const Tensor& sums = train::state_tensor(state, name, DataType::fp64);
    require(sums.shape().size() == 2 && sums.shape()[0] == 2, ErrorCode::invalid_argument,
            "'{}' of another evaluator is {}", name, to_string(sums.shape()));
    const auto half = sums.data<double>().begin() + sums.shape()[1];
    Pixels pixels;
    pixels.sums_.assign(sums.data<double>().begin(), half);
    pixels.squares_.assign(half, sums.data<double>().end());
    pixels.count_ = train::state_tensor(state, name + "_count", DataType::fp64).at(0);
    return pixels;
  }
  size_t size() const { return sums_.size(); }
  double mean(size_t pixel) const { return sums_[pixel] / count_; }
  double deviation(size_t pixel) const {
    return std::sqrt(std::max(0.0, squares_[pixel] / count_ - mean(pixel) * mean(pixel)));
  }

 private:
  std::vector<double> sums_;
  std::vector<double> squares_;
  double count_ = 0;
};

// Of samples in -1..1.
report::Picture picture_of(const Tensor& samples, int64_t row) {
  report::Picture picture{
      .height = samples.shape()[1], .width = samples.shape()[2], .channels = samples.shape()[3]};
  const int64_t size = samples.size() / samples.shape()[0];
  for (int64_t i = row * size; i < (row + 1) * size; ++i) {
    const double shade = 255 * std::clamp((samples.at(i) + 1) / 2, 0.0, 1.0);
    picture.pixels.push_back(static_cast<uint8_t>(std::lround(shade)));
  }
  return picture;
}

class GanEvaluator : public train::Evaluator {
 public:
  void add(const data::Batch& batch, const Feeds& outputs) override {
    const Tensor& samples = outputs.at("samples");
    real_.add(batch.on_host().fields.at("images"), batch.samples);
    made_.add(samples, batch.samples);
    for (int64_t row = 0; row < batch.samples && pictures_.size() < kShown; ++row)
      pictures_.push_back(picture_of(samples, row));
  }

  train::Numbers results() const override {
    double distance = 0;
    double made = 0;
    double real = 0;
    for (size_t pixel = 0; pixel < real_.size(); ++pixel) {
      distance += std::abs(made_.mean(pixel) - real_.mean(pixel));
      made += made_.deviation(pixel);
      real += real_.deviation(pixel);
    }
    return {{"mean_distance", distance / static_cast<double>(real_.size())}, {"spread", made / real}};
  }

  // Without pictures: each rank has enough of its own.
  Feeds state() const override {
    Feeds state;
    real_.save(state, "real");
    made_.save(state, "made");
    return state;
  }
  void merge(const Feeds& state) override {
    real_.add(Pixels::load(state, "real"));
    made_.add(Pixels::load(state, "made"));
  }

  std::vector<train::ReportSection> sections() const override {
    return {report::gallery_section("Samples", "What the generator makes of noise.", pictures_)};
  }

 private:
  Pixels real_;
  Pixels made_;
  std::vector<report::Picture> pictures_;
};

class GanText : public train::PredictionText {
  std::string example(const train::Example& one) override {
    const report::Picture picture = picture_of(one.outputs.at("samples"), one.row);
    return draw(picture) + fmt::format("sample {}\n\n", one.number);
  }
};

}  // namespace

nn::Task gan(const GanOptions& options) {
  const TensorType images{
      options.images.type,
      {Dimension::symbol("batch"), options.image_size, options.image_size, options.channels}};
  return {.name = "gan",
          .network = "dcgan",
          .inputs = {{"images", images}},
          .metrics = {{.name = "discriminator"},
                      {.name = "generator"},
                      {.name = "mean_distance"},
                      {.name = "spread", .larger_is_better = true}},
          .samples = "images",
          .training = [=](nn::Context& context,
                          const nn::Values& inputs) { return training(options, context, inputs["images"]); },
          .inference = [=](nn::Context& context, const nn::Values& inputs) -> nn::Values {
            return {{"samples", generator(context, options, inputs["images"]->shape()[0])}};
          }};
}

std::vector<train::Phase> gan_phases(const optim::Optimizer& optimizer) {
  const auto of = [](const char* scope) {
    return
        [prefix = std::string(scope) + "."](const nn::Variable& one) { return one.name.starts_with(prefix); };
  };
  return {{.objective = "discriminator", .groups = {{.takes = of("discriminator"), .optimizer = optimizer}}},
          {.objective = "generator",
           .groups = {{.takes = of("generator"), .optimizer = optimizer}},
           .same_batch = true}};
}

train::EvaluatorMaker gan_evaluator() {
  return [] { return std::make_unique<GanEvaluator>(); };
}

train::PredictionTextMaker gan_text() {
  return [] { return std::make_unique<GanText>(); };
}

}  // namespace tessera::tasks
