#include "tessera/recipe/run.h"

#include <chrono>
#include <optional>
#include <utility>

#include <fmt/format.h>

#include "tessera/base/file.h"
#include "tessera/base/log.h"
#include "tessera/base/progress.h"
#include "tessera/base/text.h"
#include "tessera/distribute/exchange.h"
#include "tessera/report/report.h"

#include "recipe/evaluation_folder.h"
#include "recipe/run_folder.h"
#include "recipe/run_observer.h"
#include "recipe/run_ranks.h"
#include "recipe/run_report.h"
#include "recipe/stage_data.h"

namespace tessera::recipe {
namespace {

constexpr const char* kFittedBatch = "fitted_batch";  // in the metadata of a state

train::FitOptions fit_options(const Recipe& recipe, const RunOptions& options, const train::TestSet& test) {
  return {.epochs = recipe.values.integer("train.epochs"),
          .steps = recipe.values.integer("train.steps"),
          .schedule = [recipe](int64_t total,
                               int64_t per_epoch) { return make_schedule(recipe, total, per_epoch); },
          .evaluations = {{.source = test.source.get(),
                           .evaluator = test.evaluator,
                           .every_epochs = recipe.values.integer("train.evaluate_every")}},
          .checkpoint_every = recipe.values.integer("train.checkpoint_every"),
          .checkpoint_steps = recipe.values.integer("train.checkpoint_steps"),
          .checkpoint_minutes = recipe.values.real("train.checkpoint_minutes"),
          .keep_checkpoints = recipe.values.integer("train.keep_checkpoints"),
          .max_steps = options.max_steps,
          .stop = options.stop};
}

// What the last evaluation found is not in the state that a run resumes from.
void evaluate_anew(train::Trainer& trainer, const train::TestSet& test, train::FitResult& result) {
  if (result.evaluations.front() != nullptr) return;
  result.evaluations.front() = test.evaluator();
  trainer.evaluate(*test.source, *result.evaluations.front());
}

// The recipe's options with the phases in which the task is trained.
train::TrainerOptions trainer_options_of(const Recipe& recipe, const train::Workload& workload,
                                         std::string* fallback = nullptr) {
  train::TrainerOptions options = plan_training(recipe, workload);
  options.device = open_device(recipe, fallback);
  return options;
}

void start_from(train::Trainer& trainer, const train::Workload& workload, const std::string& weights) {
  if (workload.starting_weights) {
    trainer.load_weights(workload.starting_weights(weights), weights);
  } else {
    trainer.load_weights(weights);
  }
}

// The run of one rank, or of the only process: its stages, one after another.
class Run {
 public:
  Run(const Recipe& recipe, const RunOptions& options)
      : recipe_(recipe),
        options_(options),
        is_first_(options.communicator == nullptr || options.communicator->rank() == 0),
        folder_(options.folder, recipe, options.resume, is_first_),
        evaluations_(options.folder),
        is_evaluated_beside_(recipe.values.boolean("train.evaluate_beside")),
        observer_(options.quiet || !is_first_) {
    if (!options.resume) return;
    state_ = load_checkpoint(folder_.last());
    begun_ = folder_.begun_recipe(state_->metadata);
    changes_ = changes_on_resume(*begun_, recipe, options.asked, folder_.last().string());
    const auto stage = state_->metadata.find("stage");
    if (stage != state_->metadata.end()) stage_ = parse_integer(stage->second).value_or(0);
    require(stage_ >= 0 && stage_ < recipe.stage_count(), ErrorCode::invalid_file,
            "{}: it is of stage {}, the recipe has {}", folder_.last().string(), stage_ + 1,
            recipe.stage_count());
    if (const auto batch = state_->metadata.find(kFittedBatch); batch != state_->metadata.end())
      kept_batch_ = parse_integer(batch->second);
  }

  RunResult run() {
    open_later_stages();
    while (true) {
      std::optional<RunResult> result = run_stage();
      if (result.has_value()) return std::move(*result);
      ++stage_;
      changes_ = changes_at_stage(recipe_, stage_);
    }
  }

 private:
  // What they read is looked at before the first step, lest a mistake there ends a run late.
  void open_later_stages() const {
    for (int64_t stage = stage_ + 1; stage < recipe_.stage_count(); ++stage)
      open_stage(recipe_.at_stage(stage), communicator());
  }
  // None where another stage follows, which starts from `state_`.
  std::optional<RunResult> run_stage();
  train::Trainer make_trainer(const Recipe& recipe, const train::Workload& workload,
                              const data::Source& training);
  void say_how_it_begins(const train::Trainer& trainer, const StageData& stage, const MemoryPlan& memory);
  void leave_to_evaluate(const train::DueEvaluation& due, const Recipe& own) const;
  RunResult finish(train::Trainer& trainer, const train::Workload& workload, const data::Source& training,
                   const train::TestSet& test, train::FitResult result);

  Communicator* communicator() const { return options_.communicator.get(); }
  int64_t ranks() const { return communicator() == nullptr ? 1 : communicator()->size(); }

  const Recipe& recipe_;
  const RunOptions& options_;
  bool is_first_;  // of the ranks
  RunFolder folder_;
  EvaluationFolder evaluations_;  // where another process evaluates
  bool is_evaluated_beside_;
  std::optional<Checkpoint> state_;  // to go on from
  std::optional<Recipe> begun_;      // of a run that is resumed
  std::vector<train::SettingChange> changes_;
  int64_t stage_ = 0;
  std::optional<int64_t> kept_batch_;  // that was fitted, of a run that is resumed
  bool began_ = false;                 // whether a stage had its first step
  int64_t first_step_ = 0;             // from which this process went on
  // Tells it from others that go on with the run.
  const std::string training_ = std::to_string(std::chrono::system_clock::now().time_since_epoch().count());
  std::string fallback_;
  Observer observer_;
};

// With what the run or its stage goes on from.
train::Trainer Run::make_trainer(const Recipe& recipe, const train::Workload& workload,
                                 const data::Source& training) {
  train::TrainerOptions options = trainer_options_of(recipe, workload, &fallback_);
  options.sizes = training.sizes().front();
  options.communicator = options_.communicator;
  train::Trainer trainer(workload.task, options);
  const std::string& weights = recipe.values.text("model.weights");
  if (!weights.empty() && !state_.has_value()) start_from(trainer, workload, weights);
  if (state_.has_value() && !began_) {
    trainer.restore(*state_, folder_.last().string());
  } else if (state_.has_value()) {
    const bool all = recipe.values.text("train.carried") == "all";
    trainer.begin_stage(*state_, fmt::format("stage {}", stage_ + 1),
                        all ? train::Carried::all : train::Carried::moments);
  }
  state_.reset();
  require_same_state(communicator(), trainer);
  return trainer;
}

void Run::say_how_it_begins(const train::Trainer& trainer, const StageData& stage, const MemoryPlan& memory) {
  for (const train::SettingChange& change : changes_) {
    log_info("{} is {} from step {} on, and was {}", change.key, change.after, trainer.position().step,
             change.before);
  }
  report::Progress& progress = observer_.progress();
  const DeviceDescription device = trainer.device().description();
  if (!began_) progress.print(device_summary(device, fallback_));
  if (options_.quiet) return;
  if (recipe_.stage_count() > 1)
    progress.print(fmt::format("stage {} of {}", stage_ + 1, recipe_.stage_count()));
  if (stage.fitted.has_value()) {
    const int64_t most = recipe_.at_stage(stage_).values.integer("train.batch");
    progress.print(describe(*stage.fitted, most, trainer.task().samples));
  }
  progress.print(memory_summary(memory, device.memory_bytes));
  const std::string shared = workspace_summary(trainer.workspace().uses());
  if (!shared.empty()) progress.print(shared);
}

std::optional<RunResult> Run::run_stage() {
  std::optional<LongWork> preparing(std::in_place);
  const StageData stage =
      open_stage(recipe_.at_stage(stage_), communicator(), std::exchange(kept_batch_, std::nullopt));
  const auto& [own, workload, training, fitted] = stage;
  require_same_data(communicator(), *training);
  const train::TestSet test = is_evaluated_beside_ ? train::TestSet{} : workload.test();
  train::Trainer trainer = make_trainer(own, workload, *training);
  const MemoryPlan memory = trainer.step(training->sizes().front()).memory_plan();
  const train::Position& position = trainer.position();
  observer_.begin_stage(workload.task, own.values, position.stage,
                        training->batches(position.epoch, ranks()).value_or(0));
  train::FitOptions fit = fit_options(own, options_, test);
  fit.metadata = {{"recipe", to_toml(recipe_)}};
  if (fitted.has_value()) fit.metadata[kFittedBatch] = std::to_string(fitted->batch);
  fit.checkpoints = folder_.checkpoints();
  fit.changes = changes_;
  if (is_evaluated_beside_) {
    fit.evaluations.front().elsewhere = [this, recipe = own](const train::DueEvaluation& due) {
      if (is_first_) leave_to_evaluate(due, recipe);
    };
  }
  fit.on_begin = [&] {
    if (options_.on_begin && !began_) options_.on_begin();
    preparing.reset();
    if (is_first_ && !began_) {
      folder_.begin(recipe_, begun_);
      first_step_ = trainer.position().step;
      if (is_evaluated_beside_) evaluations_.begin(first_step_);
      observer_.begin(options_.folder, recipe_, first_step_);
    }
    if (is_first_) say_how_it_begins(trainer, stage, memory);
    began_ = true;
  };
  if (is_first_) {
    fit.on_step = [&](const train::StepEvent& event) { observer_.step(event); };
    fit.on_epoch = [&](const auto& row, const auto& evaluations) { observer_.epoch(row, evaluations); };
  }
  train::FitResult result = trainer.fit(*training, fit);
  if (!result.completed) return RunResult{workload.task, std::move(result)};
  if (stage_ + 1 == recipe_.stage_count())
    return finish(trainer, workload, *training, test, std::move(result));
  state_ = trainer.training_state();
  return std::nullopt;
}

void Run::leave_to_evaluate(const train::DueEvaluation& due, const Recipe& own) const {
  const int64_t most = own.values.integer("train.keep_unevaluated");
  if (most > 0 && !due.last && evaluations_.waiting() >= most) {
    log_warning(
        "{} weights wait to be evaluated (train.keep_unevaluated), so that those after step {} are left out: "
        "is `tessera eval {} --follow` at work?",
        most, due.step, options_.folder.string());
    return;
  }
  try {
    evaluations_.add(due, {{"recipe", to_toml(recipe_)},
                           {"batch", std::to_string(own.values.integer("train.batch"))},
                           {"training", training_},
                           {"begin", std::to_string(first_step_)}});
  } catch (const Error& error) {
    if (error.code() != ErrorCode::io || due.last) throw;
    log_warning("the weights after step {} could not be left to evaluate: {}", due.step, error.what());
  }
}

RunResult Run::finish(train::Trainer& trainer, const train::Workload& workload, const data::Source& training,
                      const train::TestSet& test, train::FitResult result) {
  const LongWork finishing;
  if (is_first_) {
    save(trainer.checkpoint_source(), options_.folder / "model.safetensors");
    if (workload.write_beside_weights) workload.write_beside_weights(options_.folder);
  }
  if (!is_evaluated_beside_) evaluate_anew(trainer, test, result);
  if (!is_first_) return {workload.task, std::move(result)};
  const std::vector<std::string> remarks = remarks_on(training, test.source.get());
  for (const std::string& remark : remarks) log_info("{}", remark);
  const report::Report report = make_report(recipe_, workload, summarize(trainer, result), result, remarks);
  report::write_summary(options_.folder / "summary.json", report.summary);
  report::write_report(options_.folder / "report.html", report);
  // The last of all: what reads it writes the others anew.
  if (is_evaluated_beside_) evaluations_.end(report);
  return {workload.task, std::move(result)};
}

}  // namespace

RunResult run_recipe(const Recipe& recipe, const RunOptions& options) {
  try {
    require_same_run(options.communicator.get(), recipe);
    return Run(recipe, options).run();
  } catch (const std::exception& error) {
    distribute::end_all_ranks(options.communicator.get(), error);
    throw;
  }
}

std::vector<train::EvaluationRow> RunResult::last_evaluations() const {
  std::vector<train::EvaluationRow> last;
  for (const train::EvaluationRow& row : fit.history.evaluations) {
    std::erase_if(last, [&](const train::EvaluationRow& known) { return known.name == row.name; });
    last.push_back(row);
  }
  return last;
}

FinishedRun open_run(const std::filesystem::path& folder, const std::vector<std::string>& overrides,
                     const std::filesystem::path& checkpoint,
                     const std::shared_ptr<Communicator>& communicator) {
  // The run spelled out every key, also those without effect: warnings would say nothing new.
  const std::filesystem::path path = folder / "recipe.toml";
  std::vector<std::string> warnings;
  const Recipe recipe = parse_recipe(read_text_file(path), path.string(), overrides, &warnings);
  check_recipe_files(recipe);
  require_same_run(communicator.get(), recipe);
  // What a run in stages left is what its last one made of it.
  const Recipe own = with_device_of_rank(recipe.at_stage(recipe.stage_count() - 1), communicator.get());
  train::Workload workload = make_workload(own);
  train::TrainerOptions options = trainer_options_of(own, workload);
  options.communicator = communicator;
  train::Trainer trainer(workload.task, options);
  if (checkpoint.empty()) {
    trainer.load_weights(folder / "model.safetensors");
  } else {
    trainer.restore_to_read(load_checkpoint(checkpoint), checkpoint.string());
  }
  require_same_state(communicator.get(), trainer);
  return {std::move(workload), std::move(trainer)};
}

}  // namespace tessera::recipe
