// When the state is saved, which of the saved ones stay, and what a state of other settings becomes.
#include <set>

#include <gtest/gtest.h>

#include "tessera/base/file.h"

#include "support/comma_locale.h"
#include "support/detached_device.h"
#include "support/expect_error.h"
#include "support/temporary_folder.h"
#include "train/list_source.h"
#include "train/regression.h"
#include "train/tiny.h"

namespace tessera::testing {
namespace {

using train::FitOptions;
using train::Trainer;
using train::TrainerOptions;

TrainerOptions training_on(std::shared_ptr<Device> device) {
  return {.optimizer = optim::sgd({.learning_rate = 0.1, .momentum = 0.9}), .device = std::move(device)};
}

std::string step_of(const std::filesystem::path& file) {
  return load_checkpoint(file).metadata.at("step");
}

std::set<std::string> names_in(const std::filesystem::path& folder) {
  std::set<std::string> names;
  for (const auto& entry : std::filesystem::directory_iterator(folder)) names.insert(entry.path().filename());
  return names;
}

// Ends a training where a kill would: nothing after the step is saved.
struct Killed {};

FitOptions killed_after(int64_t step, const std::filesystem::path& folder) {
  FitOptions options{.epochs = 3, .checkpoints = folder, .checkpoint_every = 0};
  options.on_step = [step](const train::StepEvent& event) {
    if (event.position.step == step) throw Killed{};
  };
  return options;
}

// On the second a step is under way while the one before it is looked at: it must not be in what is saved.
TEST(Saving, ByStepsLosesNoMoreAndResumesToTheSameBits) {
  for (const bool detached : {false, true}) {
    const std::shared_ptr<Device> device = detached ? std::make_shared<DetachedDevice>() : Device::cpu();
    Trainer straight(tiny_perceptron(0.2), training_on(device));
    straight.fit(tiny_loader(), {.epochs = 3});
    for (const int64_t step : {5, 6, 7, 11, 17}) {
      const TemporaryFolder folder;
      FitOptions options = killed_after(step, folder.path());
      options.checkpoint_steps = 2;
      Trainer first(tiny_perceptron(0.2), training_on(device));
      EXPECT_THROW(first.fit(tiny_loader(), options), Killed);
      const auto file = folder / "last.safetensors";
      EXPECT_EQ(step_of(file), std::to_string((step - 1) / 2 * 2));
      Trainer second(tiny_perceptron(0.2), training_on(device));
      second.restore(load_checkpoint(file), file.string());
      EXPECT_TRUE(second.fit(tiny_loader(), {.epochs = 3}).completed);
      EXPECT_EQ(different_tensors(second.training_state().tensors, straight.training_state().tensors),
                std::vector<std::string>{})
          << step;
    }
  }
}

TEST(Saving, ByTimeSavesInsideAnEpoch) {
  const TemporaryFolder folder;
  FitOptions options = killed_after(4, folder.path());
  options.checkpoint_minutes = 1e-9;  // each step takes longer
  Trainer trainer(tiny_perceptron(), training_on(Device::cpu()));
  EXPECT_THROW(trainer.fit(tiny_loader(), options), Killed);
  EXPECT_EQ(step_of(folder / "last.safetensors"), "3");
}

TEST(Saving, TheLastSoManyStay) {
  for (const auto& [keep, expected] :
       {std::pair<int64_t, std::set<std::string>>{1, {"last.safetensors"}},
        {3, {"last.safetensors", "step-00000012.safetensors", "step-00000015.safetensors"}},
        {0,
         {"last.safetensors", "step-00000003.safetensors", "step-00000006.safetensors",
          "step-00000009.safetensors", "step-00000012.safetensors", "step-00000015.safetensors"}}}) {
    const TemporaryFolder folder;
    Trainer trainer(tiny_perceptron(), training_on(Device::cpu()));
    trainer.fit(tiny_loader(), {.epochs = 3,
                                .checkpoints = folder.path(),
                                .checkpoint_every = 0,
                                .checkpoint_steps = 3,
                                .keep_checkpoints = keep});
    EXPECT_EQ(names_in(folder.path()), expected) << keep;
    EXPECT_EQ(step_of(folder / "last.safetensors"), "18");
    for (const std::string& name : expected) {
      if (name.starts_with("step-")) {
        EXPECT_EQ(std::stoll(step_of(folder / name)), std::stoll(name.substr(5)));
      }
    }
  }
}

// Where somebody else evaluates, he gets the weights that training would have measured, and no step changes.
TEST(Saving, ForEvaluationsElsewhere) {
  const data::Loader evaluation = tiny_evaluation();
  const TemporaryFolder folder;
  Trainer usual(tiny_perceptron(), training_on(Device::cpu()));
  train::EvaluationPlan plan = evaluation_by(evaluation);
  plan.every_epochs = 2;
  plan.every_steps = 4;
  const train::FitResult measured =
      usual.fit(tiny_loader(),
                {.epochs = 3, .evaluations = {plan}, .checkpoints = folder / "usual", .checkpoint_every = 2});

  std::vector<train::EvaluationRow> rows;
  std::vector<bool> last;
  Trainer measuring(tiny_perceptron(), training_on(Device::cpu()));
  plan.source = nullptr;
  plan.evaluator = {};
  plan.elsewhere = [&](const train::DueEvaluation& due) {
    const auto file = folder / "weights.safetensors";
    save(due.weights, file);
    measuring.load_weights(file);
    rows.push_back({.name = due.name,
                    .step = due.step,
                    .epoch = due.epoch,
                    .results = results_on(evaluation, measuring)});
    last.push_back(due.last);
  };
  Trainer trainer(tiny_perceptron(), training_on(Device::cpu()));
  const train::FitResult handed_over =
      trainer.fit(tiny_loader(), {.epochs = 3, .evaluations = {plan}, .checkpoints = folder / "beside"});
  EXPECT_EQ(rows, measured.history.evaluations);
  EXPECT_EQ(last, (std::vector<bool>{false, false, false, false, false, true}));
  EXPECT_TRUE(handed_over.history.evaluations.empty());
  EXPECT_EQ(names_in(folder / "beside"), (std::set<std::string>{"last.safetensors"}));
  EXPECT_EQ(different_tensors(trainer.checkpoint().tensors, usual.checkpoint().tensors),
            std::vector<std::string>{});
}

// Whoever goes back to an earlier state gives it the name that is resumed; those of later steps stay until
// the run comes by again.
TEST(Saving, ARunMayGoBack) {
  const TemporaryFolder folder;
  FitOptions options{.epochs = 2, .checkpoints = folder.path(), .checkpoint_steps = 4, .keep_checkpoints = 3};
  Trainer first(tiny_perceptron(), training_on(Device::cpu()));
  first.fit(tiny_loader(), options);
  EXPECT_EQ(names_in(folder.path()), (std::set<std::string>{"last.safetensors", "step-00000006.safetensors",
                                                            "step-00000008.safetensors"}));
  std::filesystem::copy_file(folder / "step-00000006.safetensors", folder / "last.safetensors",
                             std::filesystem::copy_options::overwrite_existing);
  Trainer second(tiny_perceptron(), training_on(Device::cpu()));
  second.restore(load_checkpoint(folder / "last.safetensors"), "last");
  options.max_steps = 7;
  second.fit(tiny_loader(), options);
  EXPECT_EQ(step_of(folder / "last.safetensors"), "7");
  EXPECT_EQ(step_of(folder / "step-00000006.safetensors"), "6");
  EXPECT_EQ(step_of(folder / "step-00000008.safetensors"), "8");
}

// A disk may have room again at the next checkpoint; the last one must be written.
TEST(Saving, ACheckpointThatFailsIsTriedAgain) {
  const TemporaryFolder folder;
  const auto blocked = folder / "checkpoints";
  write_file(blocked, "a file in the place of the folder");
  FitOptions options{.epochs = 3, .checkpoints = blocked, .checkpoint_steps = 2};
  options.on_step = [&](const train::StepEvent& event) {
    if (event.position.step == 9) std::filesystem::remove(blocked);
  };
  Trainer trainer(tiny_perceptron(), training_on(Device::cpu()));
  EXPECT_TRUE(trainer.fit(tiny_loader(), options).completed);
  EXPECT_EQ(step_of(blocked / "last.safetensors"), "18");

  const auto always = folder / "always";
  write_file(always, "a file");
  Trainer other(tiny_perceptron(), training_on(Device::cpu()));
  EXPECT_ERROR(other.fit(tiny_loader(), {.checkpoints = always}), ErrorCode::io, "always");
}

TEST(Saving, WhatARunChangedIsInItsHistory) {
  const TemporaryFolder folder;
  Trainer trainer(tiny_perceptron(), training_on(Device::cpu()));
  trainer.fit(tiny_loader(), {.epochs = 1});
  bool begun = false;
  FitOptions options{.epochs = 2,
                     .checkpoints = folder.path(),
                     .metadata = {{"recipe", "now"}},
                     .changes = {{.key = "optimizer.momentum", .before = "0.9", .after = "0.5"}}};
  options.on_begin = [&] {
    begun = true;
    EXPECT_EQ(load_checkpoint(folder / "last.safetensors").metadata.at("recipe"), "now");
  };
  const train::RunHistory history = trainer.fit(tiny_loader(), options).history;
  EXPECT_TRUE(begun);
  ASSERT_EQ(history.changes.size(), 1U);
  EXPECT_EQ(history.changes[0].step, 6);
  EXPECT_EQ(history.changes[0].key, "optimizer.momentum");
}

TEST(Saving, WhatIsRefusedIsRefusedBeforeTheRunBegins) {
  bool begun = false;
  TrainerOptions accumulating = training_on(Device::cpu());
  accumulating.accumulate = 7;
  Trainer trainer(tiny_perceptron(), accumulating);
  EXPECT_ERROR(trainer.fit(tiny_loader(), {.on_begin = [&] { begun = true; }}), ErrorCode::invalid_argument,
               "7");

  Trainer six(tiny_perceptron(), training_on(Device::cpu()));
  six.fit(tiny_loader(), {.max_steps = 5});
  EXPECT_ERROR(six.fit(data::Loader(tiny_dataset(16), tiny_loading()), {.on_begin = [&] { begun = true; }}),
               ErrorCode::invalid_argument, "batch 5", "which has 2");
  EXPECT_FALSE(begun);
}

TEST(Saving, AStateOfAnotherPrecisionIsTakenUp) {
  TrainerOptions half = training_on(Device::cpu());
  half.precision = Precision::fp16;
  Trainer in_half(tiny_perceptron(), half);
  in_half.fit(tiny_loader(), {});
  const Checkpoint state = in_half.training_state();
  EXPECT_TRUE(state.tensors.contains("loss_scale"));
  Trainer in_full(tiny_perceptron(), training_on(Device::cpu()));
  in_full.restore(state, "last");
  EXPECT_TRUE(in_full.training_state().tensors.at("fc1.weight").identical(state.tensors.at("fc1.weight")));
  EXPECT_TRUE(in_full.fit(tiny_loader(), {.epochs = 2}).completed);

  Trainer again(tiny_perceptron(), half);
  again.restore(in_full.training_state(), "last");
  EXPECT_EQ(again.training_state().tensors.at("loss_scale").at(0), 65536);
  // Of the same precision, it must be there.
  Checkpoint broken = state;
  broken.tensors.erase("loss_scale");
  EXPECT_ERROR(again.restore(broken, "last"), ErrorCode::invalid_file, "'loss_scale' is missing");
}

// The best value's name of before, too, is read as it was written, whatever the locale of whoever reads it.
TEST(Saving, TheBestValueIsReadUnderALocaleWithACommaToo) {
  Trainer trainer(tiny_perceptron(), training_on(Device::cpu()));
  trainer.fit(tiny_loader(), {});
  const CommaLocale locale;
  for (const char* key : {"best", "best_accuracy"}) {
    Checkpoint state = trainer.training_state();
    state.metadata.erase("best");
    state.metadata[key] = "0.9375";
    Trainer other(tiny_perceptron(), training_on(Device::cpu()));
    other.restore(state, "last");
    EXPECT_EQ(other.training_state().metadata.at("best"), "0.9375") << key;
  }
}

// A state may be of any type: this one counts steps.
TEST(Saving, StatesOfOtherTypesStartAndComeBack) {
  const nn::Task task = tiny_task("counting", [](nn::Context& context, Value* x) {
    Value* calls = context.variable({.name = "calls",
                                     .role = InputRole::state,
                                     .shape = {},
                                     .initializer = nn::constant(40),
                                     .decays = false,
                                     .data_type = DataType::int32});
    context.update(calls, ops::add(calls, ops::constant_like(calls, 1)));
    return nn::linear(context, "fc1", nn::flatten(x), kTinyClasses);
  });
  Trainer trainer(task, training_on(Device::cpu()));
  trainer.fit(tiny_loader(), {});
  const Checkpoint state = trainer.training_state();
  EXPECT_EQ(state.tensors.at("calls").data_type(), DataType::int32);
  EXPECT_EQ(state.tensors.at("calls").at(0), 46);
  Trainer other(task, training_on(Device::cpu()));
  other.restore(state, "last");
  EXPECT_EQ(other.training_state().tensors.at("calls").at(0), 46);
}

// Whose passes make the first difference of a step count the steps, and grow with them.
class CountingDevice : public HostMemoryDevice {
 public:
  DeviceDescription description() const override { return {.name = "counting", .versions = {}}; }
  std::vector<KernelCandidate> candidates(const Node&) const override { return {reference_candidate()}; }
  PassTarget pass_target(const PassOptions&) const override {
    return {.expansion = [](const Node& node) -> GraphRule {
      const bool counts = node.operator_name() == "subtract" && node.graph().find("differences") == nullptr;
      return counts ? grown_difference : GraphRule();
    }};
  }

 private:
  static std::vector<Value*> grown_difference(const Node&, const std::vector<Value*>& inputs) {
    Graph& graph = inputs[0]->graph();
    const ops::Expression count = graph.add_input(InputRole::state, "differences", {DataType::fp32, {}},
                                                  Tensor::full(DataType::fp32, {}, 3));
    graph.add_update(count, count + 1);
    return {(ops::Expression(inputs[0]) + ops::negate(inputs[1])) * count};
  }
};

TEST(Saving, StatesThatPassesAddComeBack) {
  const auto trainer = [] { return Trainer(regression(), training_on(std::make_shared<CountingDevice>())); };
  const ListSource source(row_fields(), {rows_of(0, 8, 8), rows_of(8, 8, 8)});
  Trainer whole = trainer();
  whole.fit(source, {.epochs = 2});
  Trainer half = trainer();
  half.fit(source, {.epochs = 2, .max_steps = 3});
  const Checkpoint state = half.training_state();
  EXPECT_EQ(state.tensors.at("added/differences").at(0), 6);

  // Before anything was compiled, and after another run.
  Trainer fresh = trainer(), used = trainer();
  used.fit(source, {.epochs = 1});
  for (Trainer* resumed : {&fresh, &used}) {
    resumed->restore(state, "last");
    EXPECT_EQ(different_tensors(resumed->training_state().tensors, state.tensors),
              std::vector<std::string>{});
    resumed->fit(source, {.epochs = 2});
    EXPECT_EQ(different_tensors(resumed->training_state().tensors, whole.training_state().tensors),
              std::vector<std::string>{});
  }
  // A state of before the pass was written.
  Checkpoint before = state;
  before.tensors.erase("added/differences");
  used.restore(before, "last");
  used.fit(source, {.epochs = 2, .max_steps = 4});
  EXPECT_EQ(used.training_state().tensors.at("added/differences").at(0), 4);
}

// Of data that it is trained on, without dropout and batch norm, the evaluation shows the loss that is
// trained.
TEST(Evaluating, ShowsTheLossThatIsTrained) {
  for (const nn::Loss& loss :
       {nn::cross_entropy(), nn::cross_entropy({.smoothing = 0.2}), nn::mean_squared_error(kTinyClasses),
        nn::binary_cross_entropy(kTinyClasses)}) {
    TrainerOptions options = training_on(Device::cpu());
    options.optimizer = optim::sgd({.learning_rate = 0});
    Trainer trainer(tiny_perceptron(0, loss), options);
    data::BatchOptions loading = tiny_loading(8);
    loading.shuffle = false;
    const data::Loader loader(tiny_dataset(), loading);
    const train::FitResult result = trainer.fit(loader, {.evaluations = {evaluation_by(loader)}});
    // Losses of about one are rounded to fp32 by some eight nodes, and added in another order.
    EXPECT_NEAR(result.history.evaluations.back().results.at("loss"),
                result.history.epochs.back().measures.at("loss"), 8 * 0x1p-24)
        << loss.name;
  }
}

}  // namespace
}  // namespace tessera::testing
