// Channels-last from images to loss (decision 8 of the design), also where the model's code is
// channels-first.
#include <algorithm>

#include <gtest/gtest.h>

#include "tessera/compile/executable.h"
#include "tessera/models/registry.h"
#include "tessera/nn/layers.h"

#include "support/compare.h"
#include "support/training_step.h"

namespace tessera {
namespace {

int64_t transposes(const Graph& graph) {
  return std::count_if(graph.nodes().begin(), graph.nodes().end(),
                       [](const auto& node) { return node->operator_name() == "transpose"; });
}

Value* channels_first(Value* x) {
  return ops::transpose(x, {0, 3, 1, 2});
}

Value* channels_last(Value* x) {
  return ops::transpose(x, {0, 2, 3, 1});
}

// [N, C, H, W] -> convolution with a bias of its own, relu, pooling -> [N, K, H', W']
Value* channels_first_layer(nn::Context& context, const std::string& name, Value* x, int64_t outputs) {
  x = channels_first(nn::convolution(context, name, channels_last(x), outputs, 5, {.padding = 2}));
  x = ops::relu(ops::add(x, context.parameter(name + ".shift", {outputs, 1, 1}, nn::constant(0.1))));
  return channels_first(ops::max_pool(channels_last(x), {.window = {2, 2}}));
}

// A LeNet as other frameworks write it; ends with the mean over the image, or flattened.
models::Model channels_first_lenet(bool flattens) {
  models::ClassifierOptions options{.classes = 10, .image_size = 12, .channels = 3};
  return {"channels_first_lenet", options, [flattens](nn::Context& context, Value* x) {
            x = channels_first_layer(context, "conv1", channels_first(x), 6);
            x = channels_first_layer(context, "conv2", x, 8);
            x = flattens ? nn::flatten(x) : ops::Expression(ops::reduce_mean(x, {.axes = {2, 3}}));
            return nn::linear(context, "fc", x, 10);
          }};
}

std::map<std::string, Tensor> updated_parameters(const train::StepGraph& step,
                                                 const CompileOptions& options) {
  const auto executable = compile(*step.graph, Device::reference(), options);
  auto variables = std::make_shared<Variables>(Device::reference());
  for (const nn::Variable& variable : step.variables) {
    variables->set(variable.name, nn::initialize(variable.initializer, variable.name, variable.shape, 1));
  }
  executable->bind(variables);
  Tensor images(DataType::fp32, {2, 12, 12, 3});
  for (int64_t i = 0; i < images.size(); ++i) images.set(i, static_cast<double>(i * 37 % 101) / 101);
  executable->run({{"images", images},
                   {"labels", Tensor::from<int32_t>({2}, {3, 7})},
                   {"learning_rate", Tensor::scalar(DataType::fp32, 0.1)}});
  std::map<std::string, Tensor> result;
  for (const nn::Variable& variable : step.variables) result[variable.name] = variables->get(variable.name);
  return result;
}

TEST(Layout, ChannelsFirstTrainingStepHoldsNoTranspose) {
  const auto step = testing::training_step(channels_first_lenet(false), {.batch = 2});
  EXPECT_GT(transposes(*step.graph), 10);
  EXPECT_EQ(transposes(compile(*step.graph, Device::null())->graph()), 0);
}

// The weight of the layer after a flattened image counts channels first: one transpose there, and one back.
TEST(Layout, ChannelsFirstTrainingStepTransposesWhereTheImageIsFlattened) {
  const auto step = testing::training_step(channels_first_lenet(true), {.batch = 2});
  EXPECT_EQ(transposes(compile(*step.graph, Device::null())->graph()), 2);
}

TEST(Layout, ChannelsFirstTrainingStepLearnsTheSame) {
  for (const bool flattens : {false, true}) {
    const auto step = testing::training_step(channels_first_lenet(flattens), {.batch = 2});
    const auto expected = updated_parameters(step, {.pipeline = {.disabled = {"settle_layout"}}});
    const auto actual = updated_parameters(step, {.pipeline = {.verify = true}});
    for (const auto& [name, value] : expected) {
      // Sums in another order: weights below 1 move by a gradient, which is off by some tens of roundings to
      // fp32.
      testing::expect_close(actual.at(name), value, {1e-5, 1e-5}, name);
    }
  }
}

TEST(Layout, ResNet50InferenceHoldsNoTranspose) {
  const models::Model model = models::create("resnet50");
  const auto network = models::build(model, 8);
  CompileOptions options;
  options.passes.frozen = true;
  EXPECT_EQ(transposes(compile(*network.graph, Device::null(), options)->graph()), 0);
}

}  // namespace
}  // namespace tessera
