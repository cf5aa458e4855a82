#include "tasks/golden_training.h"

#include <algorithm>
#include <cmath>
#include <fstream>

#include <gtest/gtest.h>

#include "tessera/models/formula.h"
#include "tessera/nn/layers.h"
#include "tessera/train/step.h"

#include "test_folder.h"
#include "train/list_source.h"

namespace tessera::testing {
namespace {

namespace formula = models::formula;

constexpr double kLossScale = 1024;  // as in tests/golden/curves.py

train::Trainer make_trainer(const GoldenTraining& training, const SymbolBindings& sizes) {
  train::TrainerOptions options = training.options;
  if (!options.precision.has_value()) options.precision = Precision::fp32;
  if (options.device == nullptr) options.device = Device::cpu();
  train::Trainer trainer(training.task, options);
  Graph graph;
  nn::Context context(graph, nn::Mode::training);
  training.task.training(context, nn::add_inputs(graph, training.task, sizes));
  const std::map<std::string, Tensor> weights = formula::weights(context.variables());
  Checkpoint state = trainer.training_state();
  for (const nn::Variable& variable : context.variables()) {
    if (variable.role != InputRole::parameter) continue;
    state.tensors.at(variable.name) = nn::to_file_layout(variable, weights.at(variable.name));
  }
  if (options.precision == Precision::fp16)
    state.tensors.at(train::kLossScaleState) = Tensor::full(DataType::fp32, {}, kLossScale);
  trainer.restore(state, "formula");
  return trainer;
}

}  // namespace

nlohmann::json read_golden(const std::string& file) {
  std::ifstream stream(std::string(TESSERA_TEST_FOLDER) + "/../golden/" + file);
  return nlohmann::json::parse(stream);
}

Tensor golden_integers(const std::string& name, const Shape& shape, int64_t classes) {
  return formula::labels(name, element_count(shape), classes).reshape(shape);
}

std::string numbered(const char* name, size_t step) {
  return name + std::to_string(step);
}

Losses losses_of(const GoldenTraining& training) {
  SymbolBindings sizes = training.sizes;
  sizes["batch"] = training.batch;
  std::vector<data::Batch> batches;
  for (const Feeds& feeds : training.fields)
    batches.push_back({.fields = feeds, .sizes = sizes, .samples = training.batch});
  train::Trainer trainer = make_trainer(training, sizes);
  Losses losses;
  train::FitOptions fit;
  fit.on_step = [&](const train::StepEvent& event) {
    for (const auto& [name, mean] : event.measures) losses[name].push_back(mean);
  };
  trainer.fit(ListSource(training.task.inputs, batches), fit);
  return losses;
}

void expect_golden(const GoldenTraining& training, const Losses& losses, double roundings) {
  constexpr double kMostRelative = 1e-3;
  constexpr size_t kFirstSteps = 20;
  const double deviation = training.golden.at("float32_deviation").get<double>();
  size_t compared = 0;
  for (const auto& [name, curve] : training.golden.items()) {
    if (!curve.is_array()) continue;
    ASSERT_EQ(curve.size(), training.fields.size());
    const std::vector<double>& own = losses.at(name);
    ASSERT_EQ(own.size(), curve.size());
    ++compared;
    for (size_t step = 0; step < own.size(); ++step) {
      const auto expected = curve[step].get<double>();
      // Rounding grows from step to step.
      const double bound = step < kFirstSteps ? roundings * deviation : kMostRelative * std::abs(expected);
      EXPECT_NEAR(own[step], expected, bound) << name << " " << step;
    }
  }
  EXPECT_GE(compared, 1U);
}

}  // namespace tessera::testing
