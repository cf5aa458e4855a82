// Networks in the format that are trained: as those of which they were written are.
#include "tessera/onnx/onnx.h"
#include "tessera/onnx/save.h"
#include "tessera/program/runner.h"

#include "onnx/tiny_training.h"
#include "support/compare.h"
#include "support/temporary_folder.h"

namespace tessera::onnx {
namespace {

using testing::expect_close;
using testing::TemporaryFolder;

models::Model tiny_residual_network() {
  return models::resnet_small(
      {.classes = kTinyClasses, .image_size = kTinySize, .channels = 1, .width = 4, .blocks = {1, 1}});
}

models::Model tiny_convolutions() {
  return {"convolutions", kTiny, [](nn::Context& context, Value* x) {
            x = ops::max_pool(ops::relu(nn::convolution(context, "conv1", x, 5, 3, {.padding = 1})),
                              {.window = {2, 2}});
            x = nn::flatten(ops::relu(nn::convolution(context, "conv2", x, 6, 3, {.padding = 1})));
            return nn::linear(context, "fc", x, kTinyClasses);
          }};
}

// The network with the weights that a training of that seed starts from, for images in fp32.
void write(const models::Model& network, const std::filesystem::path& path) {
  const nn::Task task = tasks::image_classification(network, {.images = {.type = DataType::fp32}});
  std::map<std::string, Tensor> variables;
  for (const nn::Variable& variable : train::build_served(task).variables)
    variables[variable.name] = nn::to_file_layout(variable, train::starting_value(variable, kSeed));
  save(task, variables, path);
}

void expect_same_training(const models::Model& network) {
  const TemporaryFolder folder;
  write(network, folder / "network.onnx");
  const models::Model read = models::read_network(folder / "network.onnx", kTiny);
  EXPECT_EQ(read.name, "network");
  train::Trainer own = trainer_of(task_of(network));
  train::Trainer theirs = trainer_of(task_of(read));
  const std::vector<double> expected = losses_of(own);
  const std::vector<double> actual = losses_of(theirs);
  ASSERT_EQ(expected.size(), 12U);
  ASSERT_EQ(actual.size(), expected.size());
  EXPECT_LT(expected.back(), 0.9 * expected.front());
  // Sums of some hundred products in another order; twelve steps make of that a thousand roundings at most.
  for (size_t step = 0; step < expected.size(); ++step)
    EXPECT_NEAR(actual[step], expected[step], 1e-4) << step;
  // Parameters and running statistics have their names and their layout in files.
  const Checkpoint own_state = own.checkpoint();
  const Checkpoint state = theirs.checkpoint();
  EXPECT_EQ(state.tensors.size(), own_state.tensors.size());
  for (const auto& [name, tensor] : own_state.tensors) {
    ASSERT_TRUE(state.tensors.contains(name)) << name;
    // A bias is written as what broadcasts to images.
    expect_close(state.tensors.at(name).reshape(tensor.shape()), tensor, {1e-3, 1e-3}, name);
  }
  EXPECT_EQ(theirs.parameter_count(), own.parameter_count());
}

TEST(OnnxTrain, ConvolutionsAsTheNetworkThatWasWritten) {
  expect_same_training(tiny_convolutions());
}

TEST(OnnxTrain, NormalizationByTheBatchWithRunningStatistics) {
  expect_same_training(tiny_residual_network());
}

// Weights of convolutions are kept as kernels read them.
TEST(OnnxTrain, AStepTransposesNoWeights) {
  const TemporaryFolder folder;
  write(tiny_convolutions(), folder / "network.onnx");
  const nn::Task task = task_of(models::read_network(folder / "network.onnx", kTiny));
  train::Trainer trainer = trainer_of(task);
  size_t convolutions = 0;
  for (const auto& node : trainer.step({{"batch", 8}}).graph().nodes()) {
    if (node->operator_name().find("convolution") != std::string::npos) ++convolutions;
    if (node->operator_name() != "transpose") continue;
    EXPECT_EQ(node->input(0)->shape()[0], Dimension(8)) << print(*node);
  }
  EXPECT_GE(convolutions, 5U);
}

TEST(OnnxTrain, ResumesToTheSameBits) {
  const TemporaryFolder folder;
  write(tiny_residual_network(), folder / "network.onnx");
  const data::Loader loader = testing::tiny_loader();
  testing::expect_same_bits_when_resumed(
      [&] { return trainer_of(task_of(models::read_network(folder / "network.onnx", kTiny))); }, loader, 7);
}

// What was trained is written at any batch size, and gives what the trainer gives.
TEST(OnnxTrain, IsWrittenAgain) {
  const TemporaryFolder folder;
  write(tiny_residual_network(), folder / "network.onnx");
  const nn::Task task = task_of(models::read_network(folder / "network.onnx", kTiny));
  train::Trainer trainer = trainer_of(task);
  losses_of(trainer);
  save(task, trainer.checkpoint().tensors, folder / "trained.onnx");
  const data::Loader loader = testing::tiny_evaluation();
  const Tensor expected = trainer.predict(loader).at("logits");
  program::Runner runner(load(folder / "trained.onnx"), {.devices = {Device::reference()}});
  const testing::TinyData data = testing::tiny_data(45, 4);
  const auto outputs = runner.run({{"images", data.images.reshape({45, kTinySize, kTinySize, 1})}});
  expect_close(*outputs.at("logits").tensor(), expected, {1e-4, 1e-4}, "logits");
}

TEST(OnnxTrain, WhatIsFrozenStays) {
  const TemporaryFolder folder;
  write(tiny_residual_network(), folder / "network.onnx");
  const nn::Task task = task_of(models::read_network(folder / "network.onnx", kTiny));
  train::Trainer trainer(task,
                         {.device = Device::reference(), .seed = kSeed, .freeze = {"layer", "conv", "bn"}});
  const auto before = trainer.checkpoint().tensors;
  losses_of(trainer);
  const std::vector<std::string> changed = testing::different_tensors(before, trainer.checkpoint().tensors);
  EXPECT_FALSE(changed.empty());
  for (const std::string& name : changed) EXPECT_TRUE(name.starts_with("fc")) << name;
}

}  // namespace
}  // namespace tessera::onnx
