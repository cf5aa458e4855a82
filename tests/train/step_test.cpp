// The graph of one training step: accumulation, clipping, averages and the loss scale, by numbers.
#include "tessera/train/step.h"

#include <cmath>

#include <gtest/gtest.h>

#include "support/compare.h"
#include "train/tiny.h"

namespace tessera::testing {
namespace {

using train::StepGraph;
using train::StepOptions;

// Steps on one set of variables.
class StepRunner {
 public:
  StepRunner(const nn::Task& task, const StepOptions& options,
             std::shared_ptr<Device> device = Device::reference())
      : variables_(std::make_shared<Variables>(device)) {
    const StepGraph step = train::build_training_step(task, options);
    train::initialize_variables(*variables_, step.variables, 1);
    CompileOptions compile_options;
    compile_options.passes.precision = options.precision;
    updating_ = compile(*step.graph, device, compile_options);
    updating_->bind(variables_);
    if (options.accumulate > 1) {
      accumulating_ = compile(*train::build_training_step(task, options, train::StepKind::accumulating).graph,
                              device, compile_options);
      accumulating_->bind(variables_);
    }
  }

  std::map<std::string, Tensor> update(const data::Batch& batch, double rate = 0.1) {
    Feeds inputs = batch.fields;
    inputs["learning_rate"] = Tensor::scalar(DataType::fp32, rate);
    return updating_->run(inputs);
  }
  std::map<std::string, Tensor> accumulate(const data::Batch& batch) {
    return accumulating_->run(batch.fields);
  }
  Tensor get(const std::string& name) const { return variables_->get(name); }
  void set(const std::string& name, double value) {
    variables_->set(name, Tensor::full(DataType::fp32, variables_->shape(name), value));
  }
  std::map<std::string, Tensor> all() const {
    std::map<std::string, Tensor> result;
    for (const std::string& name : variables_->names()) result[name] = get(name);
    return result;
  }

 private:
  std::shared_ptr<Variables> variables_;
  std::unique_ptr<Executable> updating_;
  std::unique_ptr<Executable> accumulating_;
};

std::vector<data::Batch> batches(int64_t size) {
  data::BatchOptions options = tiny_loading(size);
  options.shuffle = false;
  const data::Loader loader(tiny_dataset(), options);
  std::vector<data::Batch> result;
  const auto stream = loader.open({});
  while (std::optional<data::Batch> batch = stream->next()) result.push_back(std::move(*batch));
  return result;
}

void set_optimizer(StepOptions& options, const optim::Optimizer& optimizer) {
  options.phase.groups = {{.optimizer = optimizer}};
}

StepOptions tiny_step(int64_t batch = 8) {
  StepOptions options;
  options.sizes = {{"batch", batch}};
  set_optimizer(options, optim::sgd({.learning_rate = 0.1, .momentum = 0}));
  return options;
}

const std::vector<std::string> kParameters{"fc1.weight", "fc1.bias", "fc2.weight", "fc2.bias"};

// The gradient of a step of plain SGD, from what it changed.
std::map<std::string, std::vector<double>> gradients_of(const data::Batch& batch) {
  StepRunner runner(tiny_perceptron(), tiny_step());
  const auto before = runner.all();
  runner.update(batch, 1);
  std::map<std::string, std::vector<double>> gradients;
  for (const std::string& name : kParameters) {
    const Tensor after = runner.get(name);
    for (int64_t i = 0; i < after.size(); ++i) gradients[name].push_back(before.at(name).at(i) - after.at(i));
  }
  return gradients;
}

double norm_of(const std::map<std::string, std::vector<double>>& gradients) {
  double squares = 0;
  for (const auto& [name, values] : gradients) {
    for (double value : values) squares += value * value;
  }
  return std::sqrt(squares);
}

// Losses and weights of about one after a few steps: some tens of roundings to fp32 (2^-24 each), in another
// order.
constexpr double kAbsolute = 1e-6;
constexpr Tolerance kFewSteps{.absolute = kAbsolute, .relative = 1e-5};

TEST(Step, AccumulatingBatchesEqualsOneLargeBatch) {
  for (const auto& device : {Device::reference(), Device::cpu()}) {
    StepOptions options = tiny_step(4);
    set_optimizer(options, optim::sgd({.momentum = 0.9}));
    options.accumulate = 4;
    StepRunner small(tiny_perceptron(), options, device);
    options = tiny_step(16);
    set_optimizer(options, optim::sgd({.momentum = 0.9}));
    StepRunner large(tiny_perceptron(), options, device);
    const std::vector<data::Batch> parts = batches(4);
    const std::vector<data::Batch> wholes = batches(16);
    for (size_t step = 0; step < wholes.size(); ++step) {
      double loss = 0;
      for (size_t part = 0; part < 4; ++part) {
        const data::Batch& batch = parts[4 * step + part];
        loss += train::mean_of(part < 3 ? small.accumulate(batch) : small.update(batch), "loss") / 4;
      }
      EXPECT_NEAR(train::mean_of(large.update(wholes[step]), "loss"), loss, kAbsolute);
      for (const std::string& name : kParameters) {
        expect_close(small.get(name), large.get(name), kFewSteps, name);
        expect_close(small.get(name + "/accumulated"),
                     std::vector<double>(static_cast<size_t>(small.get(name).size())), {}, name);
      }
    }
  }
}

TEST(Step, CountsCorrectRowsAndReportsTheMeanLoss) {
  StepRunner runner(tiny_perceptron(), tiny_step());
  for (const std::string& name : kParameters) runner.set(name, 0);
  const data::Batch batch = batches(8)[0];
  int64_t zeros = 0;  // all logits are 0: the first class wins
  for (int32_t label : batch.fields.at("labels").data<int32_t>()) zeros += label == 0 ? 1 : 0;
  const auto outputs = runner.update(batch);
  EXPECT_NEAR(train::mean_of(outputs, "loss"), std::log(3.0), kAbsolute);
  EXPECT_EQ(outputs.at("accuracy/sum").at(0), static_cast<double>(zeros));
  EXPECT_EQ(outputs.at("accuracy/weight").at(0), 8);
}

TEST(Step, ClippingScalesTheWholeGradientToTheLimit) {
  const data::Batch batch = batches(8)[0];
  const auto gradients = gradients_of(batch);
  const double norm = norm_of(gradients);
  for (const double limit : {0.25 * norm, 4 * norm}) {
    StepOptions options = tiny_step();
    options.clip_norm = limit;
    StepRunner runner(tiny_perceptron(), options);
    const auto before = runner.all();
    const auto outputs = runner.update(batch, 1);
    EXPECT_NEAR(outputs.at("gradient_norm").at(0), norm, kFewSteps.relative * norm);  // before clipping
    const double factor = std::min(1.0, limit / norm);
    for (const std::string& name : kParameters) {
      std::vector<double> expected = before.at(name).to_doubles();
      for (size_t i = 0; i < expected.size(); ++i) expected[i] -= factor * gradients.at(name)[i];
      expect_close(runner.get(name), expected, kFewSteps, name);
    }
  }
}

TEST(Step, AveragesFollowTheParameters) {
  StepOptions options = tiny_step();
  options.ema_decay = 0.75;
  StepRunner runner(tiny_perceptron(), options);
  std::map<std::string, std::vector<double>> expected;
  for (const std::string& name : kParameters) {
    EXPECT_TRUE(runner.get("ema/" + name).identical(runner.get(name))) << name;
    expected[name] = runner.get(name).to_doubles();
  }
  for (const data::Batch& batch : batches(8)) {
    runner.update(batch);
    for (const std::string& name : kParameters) {
      const Tensor parameter = runner.get(name);
      for (size_t i = 0; i < expected[name].size(); ++i) {
        expected[name][i] = 0.75 * expected[name][i] + 0.25 * parameter.at(static_cast<int64_t>(i));
      }
      expect_close(runner.get("ema/" + name), expected[name], {.absolute = kAbsolute, .relative = 1e-6},
                   name);
    }
  }
}

TEST(Step, DecayOfAllReachesTheBiases) {
  const data::Batch batch = batches(8)[0];
  const auto bias_after = [&](bool all) {
    StepOptions options = tiny_step();
    set_optimizer(options, optim::sgd({.momentum = 0, .weight_decay = 0.5}));
    options.decay_all = all;
    StepRunner runner(tiny_perceptron(), options);
    runner.set("fc2.bias", 1);
    runner.update(batch, 0.1);
    return runner.get("fc2.bias").at(0);
  };
  EXPECT_NEAR(bias_after(false) - bias_after(true), 0.1 * 0.5, kAbsolute);
}

StepOptions half_step() {
  StepOptions options = tiny_step();
  options.precision = Precision::fp16;
  return options;
}

TEST(LossScale, AnOverflowSkipsTheStepAndHalvesTheScale) {
  for (const auto& device : {Device::reference(), Device::cpu()}) {
    StepRunner runner(tiny_perceptron(), half_step(), device);
    EXPECT_EQ(runner.get("loss_scale").at(0), 65536);
    const double huge = std::ldexp(1.0, 30);
    runner.set("loss_scale", huge);
    runner.set("loss_scale_good_steps", 7);
    const auto before = runner.all();
    const auto outputs = runner.update(batches(8)[0]);
    EXPECT_TRUE(std::isfinite(outputs.at("loss/sum").at(0)));
    EXPECT_FALSE(std::isfinite(outputs.at("gradient_norm").at(0)));
    EXPECT_EQ(runner.get("loss_scale").at(0), huge / 2);
    EXPECT_EQ(runner.get("loss_scale_good_steps").at(0), 0);
    for (const std::string& name : kParameters)
      EXPECT_TRUE(runner.get(name).identical(before.at(name))) << name;
  }
}

TEST(LossScale, DoublesAfterTwoThousandGoodSteps) {
  StepRunner runner(tiny_perceptron(), half_step());
  runner.set("loss_scale", 128);
  runner.set("loss_scale_good_steps", 1998);
  runner.update(batches(8)[0]);
  EXPECT_EQ(runner.get("loss_scale").at(0), 128);
  EXPECT_EQ(runner.get("loss_scale_good_steps").at(0), 1999);
  runner.update(batches(8)[1]);
  EXPECT_EQ(runner.get("loss_scale").at(0), 256);
  EXPECT_EQ(runner.get("loss_scale_good_steps").at(0), 0);
}

TEST(LossScale, NeverFallsBelowOne) {
  StepOptions options = half_step();
  const nn::Loss steep{"steep", [](Value* logits, Value*) { return ops::multiply(logits, 1e30); }};
  StepRunner runner(tiny_perceptron(0, steep), options);
  runner.set("loss_scale", 1.5);
  runner.update(batches(8)[0]);
  EXPECT_GE(runner.get("loss_scale").at(0), 1);
}

TEST(LossScale, DoesNotChangeTheGradients) {
  StepRunner half(tiny_perceptron(), half_step());
  StepRunner full(tiny_perceptron(), tiny_step());
  const data::Batch batch = batches(8)[0];
  half.update(batch);
  full.update(batch);
  for (const std::string& name : kParameters) {
    // Gradients below 2 that pass a few layers in fp16: two units of 2^-11 each, of which the weights take a
    // part.
    expect_close(half.get(name), full.get(name), {.absolute = 2e-3, .relative = 2e-3}, name);
  }
}

TEST(LossScale, WhatOverflowedWhileAccumulatingIsDropped) {
  StepOptions options = half_step();
  options.accumulate = 2;
  StepRunner runner(tiny_perceptron(), options);
  runner.set("loss_scale", std::ldexp(1.0, 30));
  const std::vector<data::Batch> data = batches(8);
  const auto before = runner.all();
  runner.accumulate(data[0]);
  runner.update(data[1]);
  for (const std::string& name : kParameters)
    EXPECT_TRUE(runner.get(name).identical(before.at(name))) << name;
  runner.set("loss_scale", 1024);
  runner.accumulate(data[2]);
  EXPECT_TRUE(std::isfinite(runner.update(data[3]).at("gradient_norm").at(0)));
  EXPECT_FALSE(runner.get("fc1.weight").identical(before.at("fc1.weight")));
}

TEST(Evaluation, LeavesFillingRowsOutAndReadsTheAverages) {
  const StepGraph graph =
      train::build_frozen(tiny_perceptron(), train::Reading::evaluation, {{"batch", 2}},
                          [](const nn::Variable& variable) { return variable.role == InputRole::parameter; });
  std::vector<std::string> names;
  for (const nn::Variable& variable : graph.variables) names.push_back(variable.name);
  EXPECT_EQ(names,
            (std::vector<std::string>{"ema/fc1.weight", "ema/fc1.bias", "ema/fc2.weight", "ema/fc2.bias"}));
  auto variables = std::make_shared<Variables>(Device::reference());
  train::initialize_variables(*variables, graph.variables, 1);
  const auto executable = compile(*graph.graph, Device::reference());
  executable->bind(variables);
  const auto outputs = executable->run({{"images", Tensor(DataType::uint8, {2, kTinySize, kTinySize, 1})},
                                        {"labels", Tensor::from<int32_t>({2}, {1, -1})}});
  EXPECT_GT(outputs.at("loss").at(0), 0);
  EXPECT_EQ(outputs.at("loss").at(1), 0);
}

}  // namespace
}  // namespace tessera::testing
