// The losses of twenty steps, as PyTorch has them: tests/golden/gan.py.
#include <cmath>
#include <fstream>

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "tessera/models/formula.h"
#include "tessera/tasks/gan.h"
#include "tessera/train/trainer.h"

#include "test_folder.h"
#include "train/list_source.h"

namespace tessera::testing {
namespace {

constexpr int64_t kSize = 12;
constexpr int64_t kBatch = 8;

ListSource pictures(size_t steps) {
  std::vector<data::Batch> batches;
  for (size_t step = 0; step < steps; ++step) {
    Tensor images = models::formula::images("gan." + std::to_string(step), {kBatch, kSize, kSize, 1});
    batches.push_back({.fields = {{"images", images}}, .sizes = {{"batch", kBatch}}, .samples = kBatch});
  }
  return {tasks::gan({.image_size = kSize}).inputs, batches};
}

// Both networks with the weights of the formula.
train::Trainer make_trainer() {
  const nn::Task task = tasks::gan({.image_size = kSize, .noise = 8, .width = 4});
  train::Trainer trainer(task,
                         {.phases = tasks::gan_phases(optim::adam({.learning_rate = 2e-3, .beta1 = 0.5})),
                          .precision = Precision::fp32,
                          .device = Device::cpu()});
  Graph graph;
  nn::Context context(graph, nn::Mode::training);
  task.training(context, nn::add_inputs(graph, task, {{"batch", kBatch}}));
  const std::map<std::string, Tensor> weights = models::formula::weights(context.variables());
  Checkpoint state = trainer.training_state();
  for (const nn::Variable& variable : context.variables()) {
    if (variable.role != InputRole::parameter) continue;
    state.tensors.at(variable.name) = nn::to_file_layout(variable, weights.at(variable.name));
  }
  trainer.restore(state, "formula");
  return trainer;
}

TEST(GanGolden, LossesAreThoseOfPyTorch) {
  std::ifstream file(std::string(TESSERA_TEST_FOLDER) + "/../golden/gan.json");
  const nlohmann::json golden = nlohmann::json::parse(file);
  const size_t steps = golden.at("generator").size();
  ASSERT_EQ(steps, 20U);
  train::Trainer trainer = make_trainer();
  std::map<std::string, std::vector<double>> losses;
  train::FitOptions fit;
  fit.on_step = [&](const train::StepEvent& event) {
    for (const auto& [name, mean] : event.measures) losses[name].push_back(mean);
  };
  trainer.fit(pictures(steps), fit);
  for (const char* name : {"discriminator", "generator"}) {
    ASSERT_EQ(losses.at(name).size(), steps);
    for (size_t step = 0; step < steps; ++step) {
      // PyTorch's own float32 is as far from its float64 as `float32_deviation`, a few roundings of losses of
      // about one. Ours has sums in another order and noise and logarithms that are off by some units in the
      // last place each.
      const double bound = 40 * golden.at("float32_deviation").get<double>();
      EXPECT_NEAR(losses.at(name)[step], golden.at(name)[step].get<double>(), bound) << name << " " << step;
    }
  }
}

}  // namespace
}  // namespace tessera::testing
