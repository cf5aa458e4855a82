// Ten steps of every optimizer beside PyTorch's and the formulas of tests/golden/README.md.
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "tessera/compile/executable.h"
#include "tessera/models/formula.h"
#include "tessera/ops/functions.h"
#include "tessera/optim/optimizer.h"
#include "tessera/train/checkpoint.h"

#include "support/compare.h"
#include "support/golden.h"
#include "support/optimizer_golden.h"

namespace tessera::testing {
namespace {

optim::Optimizer make(const std::string& name, const nlohmann::json& o) {
  const double rate = o.at("learning_rate");
  const double decay = o.at("weight_decay");
  if (name.starts_with("sgd")) return optim::sgd({rate, o.at("momentum"), o.at("nesterov"), decay});
  if (name.starts_with("adagrad")) return optim::adagrad({rate, o.at("eps"), decay});
  if (name.starts_with("adam")) {
    const optim::AdamOptions options{rate, o.at("betas")[0], o.at("betas")[1], o.at("eps"), decay};
    return name == "adamw" ? optim::adamw(options) : optim::adam(options);
  }
  if (name.starts_with("rmsprop"))
    return optim::rmsprop({rate, o.at("alpha"), o.at("eps"), o.at("momentum"), decay, o.at("centered")});
  if (name.starts_with("lars"))
    return optim::lars({rate, o.at("momentum"), decay, o.at("eta"), o.at("epsilon"), o.at("nesterov")});
  return optim::lamb(
      {rate, o.at("betas")[0], o.at("betas")[1], o.at("epsilon"), decay, o.at("trust_without_decay")});
}

// A graph with the gradients and the learning rate as inputs, as the training step appends updates.
struct UpdateGraph {
  Graph graph;
  std::vector<nn::Variable> variables;
};

std::unique_ptr<UpdateGraph> build(const optim::Optimizer& optimizer, bool layerwise) {
  auto result = std::make_unique<UpdateGraph>();
  Graph& graph = result->graph;
  nn::Context context(graph, nn::Mode::training);
  Value* rate = graph.add_input(InputRole::input, "learning_rate", {DataType::fp32, {}});
  Value* step = nullptr;
  if (optimizer.needs_step) {
    Value* previous = context.state("optimizer_step", {}, nn::zeros());
    step = ops::add(previous, 1);
    context.update(previous, step);
  }
  for (const auto& [name, shape] : kShapes) {
    const nn::Variable variable{.name = name,
                                .shape = shape,
                                .initializer = nn::zeros(),
                                .decays = !layerwise || shape.size() > 1,
                                .file_shape = {},
                                .file_view = {},
                                .permutation = {}};
    Value* parameter = context.variable(variable);
    Value* gradient =
        graph.add_input(InputRole::input, "gradient." + name, {DataType::fp32, to_symbolic(shape)});
    optim::UpdateContext update(context, variable, parameter, gradient, rate, step);
    context.update(parameter, optimizer.apply(update));
  }
  result->variables = context.variables();
  return result;
}

class Optimizers : public ::testing::TestWithParam<std::string> {};

TEST_P(Optimizers, StepAsTheGoldenOnes) {
  const data::SafetensorsFile golden = open_golden("optimizers");
  const auto options = nlohmann::json::parse(golden.metadata().at(GetParam()));
  const optim::Optimizer optimizer = make(GetParam(), options);
  const bool layerwise = GetParam().starts_with("la") || GetParam().starts_with("nv");
  const std::unique_ptr<UpdateGraph> update = build(optimizer, layerwise);
  for (const auto& device : {Device::reference(), Device::cpu()}) {
    auto variables = std::make_shared<Variables>(device);
    train::initialize_variables(*variables, update->variables, 1);
    for (const auto& [name, shape] : kShapes) {
      variables->set(name, formula_tensor("optimizer." + name, shape));
    }
    const auto executable = compile(update->graph, device);
    executable->bind(variables);
    for (int64_t step = 1; step <= kSteps; ++step) {
      const double rate = optimizer.learning_rate * (step <= 5 ? 1 : 0.5);
      std::map<std::string, Tensor> inputs{{"learning_rate", Tensor::scalar(DataType::fp32, rate)}};
      for (const auto& [name, shape] : kShapes) {
        inputs["gradient." + name] =
            formula_tensor("optimizer." + name + ".gradient." + std::to_string(step), shape);
      }
      executable->run(inputs);
      for (const auto& [name, shape] : kShapes) {
        const std::vector<double> all = golden.read(GetParam() + "." + name).to_doubles();
        const int64_t count = element_count(shape);
        const auto begin = all.begin() + (step - 1) * count;
        // Ten roundings of weights and moments; Adam's corrections 1 - beta^t lose three digits at t = 1.
        expect_close(variables->get(name), std::vector<double>(begin, begin + count),
                     {.absolute = 5e-6, .relative = 5e-6},
                     fmt::format("{} step {} {}", device->description().name, step, name));
      }
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Golden, Optimizers,
                         ::testing::Values("sgd", "sgd_momentum", "sgd_nesterov", "adam", "adam_l2", "adamw",
                                           "adagrad", "adagrad_l2", "rmsprop", "rmsprop_momentum", "lars",
                                           "lars_nesterov", "lamb", "nvlamb"),
                         [](const auto& test) { return test.param; });

TEST(Optimizers, LeaveUndecayedParametersAlone) {
  // With a zero gradient only weight decay moves a weight.
  const std::unique_ptr<UpdateGraph> update =
      build(optim::sgd({.learning_rate = 0.5, .momentum = 0, .weight_decay = 0.1}), true);
  auto variables = std::make_shared<Variables>(Device::reference());
  train::initialize_variables(*variables, update->variables, 1);
  std::map<std::string, Tensor> inputs{{"learning_rate", Tensor::scalar(DataType::fp32, 0.5)}};
  for (const auto& [name, shape] : kShapes) {
    variables->set(name, Tensor::full(DataType::fp32, shape, 1));
    inputs["gradient." + name] = Tensor(DataType::fp32, shape);
  }
  const auto executable = compile(update->graph, Device::reference());
  executable->bind(variables);
  executable->run(inputs);
  EXPECT_FLOAT_EQ(static_cast<float>(variables->get("first.weight").at(0)), 0.95F);
  EXPECT_EQ(variables->get("second.bias").at(0), 1);
}

}  // namespace
}  // namespace tessera::testing
