#include "tessera/recipe/run.h"

#include <cmath>
#include <ctime>
#include <optional>

#include <fmt/chrono.h>

#include "tessera/base/file.h"
#include "tessera/base/log.h"
#include "tessera/base/progress.h"
#include "tessera/distribute/exchange.h"
#include "tessera/report/event_log.h"
#include "tessera/report/machine.h"
#include "tessera/report/progress.h"
#include "tessera/report/report.h"
#include "tessera/report/sections.h"

#include "recipe/run_folder.h"
#include "recipe/run_ranks.h"

namespace tessera::recipe {
namespace {

report::RunSummary summarize(const train::Trainer& trainer, const train::FitResult& result) {
  const DeviceDescription device = trainer.device().description();
  report::RunSummary summary{.device = device.name,
                             .precision = std::string(to_string(trainer.precision())),
                             .task = trainer.task().name,
                             .network = trainer.task().network,
                             .parameters = trainer.parameter_count(),
                             .epochs = result.position.epoch,
                             .train_seconds = result.history.train_seconds(),
                             .versions = device.versions};
  for (const train::EvaluationRow& row : result.history.evaluations)
    summary.evaluations[row.name] = row.results;
  double samples = 0;
  for (const train::EpochRow& row : result.history.epochs) samples += row.samples_per_second * row.seconds;
  if (summary.train_seconds > 0) summary.samples_per_second = samples / summary.train_seconds;
  summary.versions["tessera"] = report::read_machine().tessera_version;
  return summary;
}

// What training and test had to say of their data; nothing where they said nothing.
std::vector<std::string> remarks_on(const data::Source& training, const data::Source& test) {
  std::vector<std::string> remarks;
  for (const std::string& remark : training.remarks()) remarks.push_back("Training: " + remark);
  for (const std::string& remark : test.remarks()) remarks.push_back("Test: " + remark);
  return remarks;
}

report::Report make_report(const Recipe& recipe, const train::Workload& workload,
                           const report::RunSummary& summary, const train::FitResult& result,
                           const std::vector<std::string>& remarks) {
  report::Report report{.data = workload.data,
                        .date = fmt::format("{:%Y-%m-%d %H:%M}", fmt::localtime(std::time(nullptr))),
                        .summary = summary,
                        .history = result.history,
                        .machine = report::read_machine(),
                        .recipe = to_toml(recipe),
                        .metrics = workload.task.metrics,
                        .samples = workload.task.samples};
  for (const auto& evaluation : result.evaluations) {
    if (evaluation == nullptr) continue;
    for (train::ReportSection& section : evaluation->sections())
      report.sections.push_back(std::move(section));
  }
  if (!remarks.empty()) report.sections.push_back(report::remarks_section(remarks));
  return report;
}

// The live line and the log of events, fed by the trainer.
class Observer {
 public:
  Observer(const nn::Task& task, const Recipe& recipe, int64_t batches_per_epoch, bool quiet)
      : progress_({.metrics = task.metrics, .samples = task.samples}),
        recipe_(recipe),
        epochs_(recipe.values.integer("train.epochs")),
        steps_per_epoch_(batches_per_epoch / recipe.values.integer("train.accumulate")),
        accumulate_(recipe.values.integer("train.accumulate")),
        quiet_(quiet) {}

  report::Progress& progress() { return progress_; }

  void begin(const std::filesystem::path& folder, int64_t first_step) {
    events_.emplace(folder, first_step);
    events_->text("recipe", to_toml(recipe_));
  }

  void step(const train::StepEvent& event) {
    events_->step(event);
    if (quiet_) return;
    for (const auto& [measure, mean] : event.measures) {
      const auto known = measures_.emplace(measure, mean).first;
      known->second = smooth(known->second, mean);
    }
    rate_ = std::isnan(rate_) ? event.samples_per_second : smooth(rate_, event.samples_per_second);
    progress_.update({.epoch = event.position.epoch + 1,
                      .epochs = epochs_,
                      .step = event.position.batch / accumulate_,
                      .steps_per_epoch = steps_per_epoch_,
                      .measures = measures_,
                      .samples_per_second = rate_});
  }

  void epoch(const train::EpochRow& row, const std::vector<train::EvaluationRow>& evaluations) {
    events_->epoch(row, evaluations);
    if (!quiet_) progress_.finish_epoch(row, evaluations, epochs_);
  }

 private:
  static double smooth(double average, double value) { return 0.95 * average + 0.05 * value; }

  report::Progress progress_;
  std::optional<report::EventLog> events_;
  const Recipe& recipe_;
  int64_t epochs_;
  int64_t steps_per_epoch_;
  int64_t accumulate_;
  bool quiet_;
  train::Numbers measures_;
  double rate_ = train::kNotMeasured;
};

train::FitOptions fit_options(const Recipe& recipe, const RunOptions& options, const train::TestSet& test) {
  return {.epochs = recipe.values.integer("train.epochs"),
          .schedule = [&recipe](int64_t total,
                                int64_t per_epoch) { return make_schedule(recipe, total, per_epoch); },
          .evaluations = {{.source = test.source.get(),
                           .evaluator = test.evaluator,
                           .every_epochs = recipe.values.integer("train.evaluate_every")}},
          .checkpoint_every = recipe.values.integer("train.checkpoint_every"),
          .checkpoint_steps = recipe.values.integer("train.checkpoint_steps"),
          .checkpoint_minutes = recipe.values.real("train.checkpoint_minutes"),
          .keep_checkpoints = recipe.values.integer("train.keep_checkpoints"),
          .max_steps = options.max_steps,
          .stop = options.stop,
          .metadata = {{"recipe", to_toml(recipe)}}};
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

// The run of one rank, or of the only process.
RunResult run_rank(const Recipe& recipe, const RunOptions& options) {
  Communicator* const communicator = options.communicator.get();
  const bool is_first = communicator == nullptr || communicator->rank() == 0;
  std::optional<LongWork> preparing(std::in_place);
  require_same_run(communicator, recipe);
  RunFolder folder(options.folder, recipe, options.resume, is_first);
  std::optional<Checkpoint> state;
  std::optional<Recipe> begun;
  std::vector<train::SettingChange> changes;
  if (options.resume) {
    state = load_checkpoint(folder.last());
    begun = folder.begun_recipe(state->metadata);
    changes = changes_on_resume(*begun, recipe, options.asked, folder.last().string());
  }
  const Recipe own = recipe_of_rank(recipe, communicator);
  const train::Workload workload = make_workload(own);
  const std::shared_ptr<const data::Source> training = workload.training();
  require_same_data(communicator, *training);
  const train::TestSet test = workload.test();
  std::string fallback;
  train::TrainerOptions trainer_options = trainer_options_of(own, workload, &fallback);
  trainer_options.sizes = training->sizes().front();
  trainer_options.communicator = options.communicator;
  train::Trainer trainer(workload.task, trainer_options);
  const std::string& weights = recipe.values.text("model.weights");
  if (!weights.empty() && !options.resume) start_from(trainer, workload, weights);
  int64_t first_step = 0;
  if (state.has_value()) {
    trainer.restore(*state, folder.last().string());
    first_step = std::stoll(state->metadata.at("step"));
    state.reset();
  }
  require_same_state(communicator, trainer);
  const MemoryPlan memory = trainer.step(training->sizes().front()).memory_plan();
  const int64_t ranks = communicator == nullptr ? 1 : communicator->size();
  Observer observer(workload.task, recipe, training->batches(0, ranks).value_or(0),
                    options.quiet || !is_first);
  train::FitOptions fit = fit_options(recipe, options, test);
  fit.checkpoints = folder.checkpoints();
  fit.changes = changes;
  fit.on_begin = [&] {
    if (options.on_begin) options.on_begin();
    preparing.reset();
    if (!is_first) return;
    folder.begin(recipe, begun);
    observer.begin(options.folder, first_step);
    for (const train::SettingChange& change : changes) {
      log_info("{} is {} from step {} on, and was {}", change.key, change.after, first_step, change.before);
    }
    const DeviceDescription device = trainer.device().description();
    observer.progress().print(device_summary(device, fallback));
    if (options.quiet) return;
    observer.progress().print(memory_summary(memory, device.memory_bytes));
    const std::string shared = workspace_summary(trainer.workspace().uses());
    if (!shared.empty()) observer.progress().print(shared);
  };
  if (is_first) {
    fit.on_step = [&](const train::StepEvent& event) { observer.step(event); };
    fit.on_epoch = [&](const auto& row, const auto& evaluations) { observer.epoch(row, evaluations); };
  }
  train::FitResult result = trainer.fit(*training, fit);
  if (!result.completed) return {workload.task, std::move(result)};

  const LongWork finishing;
  if (is_first) {
    save(trainer.checkpoint_source(), options.folder / "model.safetensors");
    if (workload.write_beside_weights) workload.write_beside_weights(options.folder);
  }
  evaluate_anew(trainer, test, result);
  if (!is_first) return {workload.task, std::move(result)};
  const report::RunSummary summary = summarize(trainer, result);
  report::write_summary(options.folder / "summary.json", summary);
  const std::vector<std::string> remarks = remarks_on(*training, *test.source);
  for (const std::string& remark : remarks) log_warning("{}", remark);
  report::write_report(options.folder / "report.html",
                       make_report(recipe, workload, summary, result, remarks));
  return {workload.task, std::move(result)};
}

}  // namespace

RunResult run_recipe(const Recipe& recipe, const RunOptions& options) {
  try {
    return run_rank(recipe, options);
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
  const Recipe own = with_device_of_rank(recipe, communicator.get());
  train::Workload workload = make_workload(own);
  train::TrainerOptions options = trainer_options_of(own, workload);
  options.communicator = communicator;
  train::Trainer trainer(workload.task, options);
  if (checkpoint.empty()) {
    trainer.load_weights(folder / "model.safetensors");
  } else {
    trainer.restore(load_checkpoint(checkpoint), checkpoint.string());
  }
  require_same_state(communicator.get(), trainer);
  return {std::move(workload), std::move(trainer)};
}

}  // namespace tessera::recipe
