// Gradients that are clipped by their common norm, before LAMB's update: NVLAMB (tests/golden/optimizers.py).
#include <gtest/gtest.h>

#include "tessera/models/formula.h"
#include "tessera/ops/functions.h"
#include "tessera/train/trainer.h"

#include "support/compare.h"
#include "support/golden.h"
#include "support/optimizer_golden.h"
#include "train/list_source.h"

namespace tessera::testing {
namespace {

// Whose gradients are its inputs.
nn::Task given_gradients() {
  nn::Task task{.name = "given", .network = "given", .inputs = {}, .metrics = {{.name = "loss"}}};
  for (const auto& [name, shape] : kShapes)
    task.inputs.push_back({"gradient." + name, {DataType::fp32, to_symbolic(shape)}});
  task.training = [](nn::Context& context, const nn::Values& inputs) -> nn::Training {
    Value* loss = nullptr;
    for (const auto& [name, shape] : kShapes) {
      Value* weight = context.parameter(name, shape, nn::zeros(), shape.size() > 1);
      Value* product = ops::reduce_sum(ops::multiply(weight, inputs["gradient." + name]));
      loss = loss == nullptr ? product : ops::add(loss, product);
    }
    return {.objectives = {{.name = "loss", .sum = loss, .weight = ops::constant_like(loss, 1)}}};
  };
  return task;
}

TEST(Clipping, BeforeLambIsNvlamb) {
  const data::SafetensorsFile golden = open_golden("optimizers");
  std::vector<data::Batch> batches;
  for (int64_t step = 1; step <= kSteps; ++step) {
    data::Batch& batch = batches.emplace_back();
    batch.samples = 1;
    for (const auto& [name, shape] : kShapes)
      batch.fields["gradient." + name] =
          formula_tensor("optimizer." + name + ".gradient." + std::to_string(step), shape);
  }
  train::Trainer trainer(
      given_gradients(),
      {.optimizer = optim::lamb({.learning_rate = 0.05, .weight_decay = 0.01, .trust_all = true}),
       .precision = Precision::fp32,
       .device = Device::cpu(),
       .clip_norm = 1});
  std::map<std::string, Tensor> weights;
  for (const auto& [name, shape] : kShapes) weights[name] = formula_tensor("optimizer." + name, shape);
  trainer.load_weights(weights, "the formula");
  const ListSource source(trainer.task().inputs, batches);
  for (int64_t step = 1; step <= kSteps; ++step) {
    train::FitOptions fit{.max_steps = step};
    fit.schedule = [](int64_t, int64_t) { return optim::step({5}, 0.5); };
    trainer.fit(source, fit);
    for (const auto& [name, shape] : kShapes) {
      const std::vector<double> all = golden.read("nvlamb_clipped." + name).to_doubles();
      const int64_t count = element_count(shape);
      const auto begin = all.begin() + (step - 1) * count;
      // As the optimizers' own tests; the norm has 1e-6 added to it here and there.
      expect_close(trainer.checkpoint().tensors.at(name), std::vector<double>(begin, begin + count),
                   {.absolute = 5e-6, .relative = 5e-6}, fmt::format("step {} {}", step, name));
    }
  }
}

}  // namespace
}  // namespace tessera::testing
