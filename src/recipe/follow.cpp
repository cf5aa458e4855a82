#include "tessera/recipe/follow.h"

#include <algorithm>
#include <chrono>
#include <iterator>
#include <memory>
#include <optional>
#include <thread>

#include "tessera/base/error.h"
#include "tessera/base/file.h"
#include "tessera/base/file_lock.h"
#include "tessera/base/log.h"
#include "tessera/recipe/run.h"
#include "tessera/report/event_log.h"
#include "tessera/report/sections.h"
#include "tessera/train/goal.h"

#include "recipe/evaluation_folder.h"

namespace tessera::recipe {
namespace {

namespace fs = std::filesystem;

constexpr const char* kLock = ".tessera-evaluation.lock";
constexpr std::chrono::milliseconds kPause{
    200};  // between two looks at the folder, which may be another machine's

// What weights of a recipe, a stage and a batch are evaluated with.
struct Measuring {
  Measuring(Recipe own, train::Workload made)
      : workload(std::move(made)), test(workload.test()), trainer(workload.task, options_of(own, workload)) {}

  train::Workload workload;
  train::TestSet test;
  train::Trainer trainer;

 private:
  static train::TrainerOptions options_of(const Recipe& own, const train::Workload& workload) {
    train::TrainerOptions options = plan_training(own, workload);
    options.device = open_device(own);
    return options;
  }
};

class Follower {
 public:
  explicit Follower(const FollowOptions& options) : options_(options), evaluations_(options.folder) {}

  bool run() {
    if (!wait_for_recipe()) return false;
    std::optional<FileLock> lock = FileLock::try_lock(options_.folder / kLock);
    require(lock.has_value(), ErrorCode::io, "{}: another process evaluates this run (process {})",
            options_.folder.string(), FileLock::holder(options_.folder / kLock));
    while (!told_to_stop()) {
      // In this order: a training that has ended leaves nothing more.
      const std::optional<report::Report> ended = evaluations_.ended();
      if (const std::optional<WaitingWeights> weights = evaluations_.take()) {
        if (!evaluate(*weights)) return false;
        evaluations_.remove(*weights);
      } else if (ended.has_value()) {
        complete(*ended);
        return true;
      } else {
        std::this_thread::sleep_for(kPause);
      }
    }
    return false;
  }

 private:
  bool told_to_stop() const { return options_.stop != nullptr && options_.stop->load(); }
  bool wait_for_recipe() const;
  void open(const WaitingWeights& weights);
  bool evaluate(const WaitingWeights& weights);
  void keep_best(const WaitingWeights& weights, const std::vector<train::EvaluationRow>& before,
                 const train::EvaluationRow& row) const;
  void log_event(const train::EvaluationRow& row);
  void complete(report::Report report) const;

  const FollowOptions& options_;
  EvaluationFolder evaluations_;
  std::string opened_;  // what `measuring_` is of
  std::unique_ptr<Measuring> measuring_;
  std::optional<report::EventLog> events_;
  int64_t last_step_ = 0;
};

bool Follower::wait_for_recipe() const {
  const fs::path path = options_.folder / "recipe.toml";
  std::error_code ignored;
  while (!fs::exists(path, ignored)) {
    if (told_to_stop()) return false;
    std::this_thread::sleep_for(kPause);
  }
  std::vector<std::string> warnings;
  const Recipe recipe = parse_recipe(read_text_file(path), path.string(), options_.overrides, &warnings);
  require(recipe.values.boolean("train.evaluate_beside"), ErrorCode::invalid_argument,
          "{}: the run evaluates by itself (train.evaluate_beside is false)", options_.folder.string());
  return true;
}

// The recipe is that of the weights: a run that goes on may have another one.
void Follower::open(const WaitingWeights& weights) {
  const std::string key = fmt::format("{} {} {}", weights.stage, weights.batch, weights.recipe);
  if (key == opened_) return;
  measuring_.reset();
  std::vector<std::string> warnings;
  const Recipe recipe = parse_recipe(weights.recipe, weights.path.string(), options_.overrides, &warnings);
  check_recipe_files(recipe);
  Recipe own = recipe.at_stage(weights.stage);
  own.values.set("train.batch", weights.batch);
  train::Workload workload = make_workload(own);
  measuring_ = std::make_unique<Measuring>(std::move(own), std::move(workload));
  opened_ = key;
}

// False when it was told to stop meanwhile.
bool Follower::evaluate(const WaitingWeights& weights) {
  FoundResults found = evaluations_.results();
  std::vector<train::EvaluationRow>& rows = found.report.history.evaluations;
  const bool is_same_training = found.training == weights.training;
  const bool is_known =
      std::any_of(rows.begin(), rows.end(), [&](const auto& row) { return row.step == weights.step; });
  // A process that was killed after it had kept what it found.
  if (is_same_training && is_known) return true;
  // Of a training from which somebody went back.
  if (!is_same_training) std::erase_if(rows, [&](const auto& row) { return row.step > weights.begin; });
  std::erase_if(rows, [&](const auto& row) { return row.step >= weights.step; });

  open(weights);
  train::Trainer& trainer = measuring_->trainer;
  trainer.load_weights(weights.path);
  const std::unique_ptr<train::Evaluator> evaluator = measuring_->test.evaluator();
  trainer.evaluate(*measuring_->test.source, *evaluator, {.stop = options_.stop});
  if (told_to_stop()) return false;
  const train::EvaluationRow row{
      .name = weights.name, .step = weights.step, .epoch = weights.epoch, .results = evaluator->results()};
  keep_best(weights, rows, row);
  log_event(row);
  rows.push_back(row);
  found.training = weights.training;
  found.report.metrics = trainer.task().metrics;
  found.report.sections = evaluator->sections();
  std::vector<std::string> remarks = measuring_->test.source->remarks();
  for (std::string& remark : remarks) remark.insert(0, "Test: ");
  if (!remarks.empty()) found.report.sections.push_back(report::remarks_section(remarks));
  evaluations_.keep(found);
  if (options_.on_evaluation) options_.on_evaluation(trainer.task(), row);
  return true;
}

// The search begins again with each stage.
void Follower::keep_best(const WaitingWeights& weights, const std::vector<train::EvaluationRow>& before,
                         const train::EvaluationRow& row) const {
  const train::Trainer& trainer = measuring_->trainer;
  const nn::Metric* const goal = train::goal_metric(trainer.task().metrics, row.results);
  if (goal == nullptr) return;
  std::optional<double> best;
  for (const train::EvaluationRow& one : before) {
    const auto result = one.results.find(goal->name);
    if (one.step <= weights.stage_step || result == one.results.end()) continue;
    if (train::is_better(*goal, result->second, best)) best = result->second;
  }
  if (!train::is_better(*goal, row.results.at(goal->name), best)) return;
  const fs::path folder = options_.folder / "checkpoints";
  make_folder(folder);
  save(trainer.checkpoint_source(), folder / "best.safetensors");
}

// In a file beside the training's: readers of event files go on to the next one of a folder.
void Follower::log_event(const train::EvaluationRow& row) {
  if (!events_.has_value() || row.step <= last_step_) events_.emplace(evaluations_.path(), row.step);
  events_->epoch({.step = row.step}, {row});
  last_step_ = row.step;
}

void Follower::complete(report::Report report) const {
  FoundResults found = evaluations_.results();
  std::vector<train::EvaluationRow>& rows = report.history.evaluations;
  std::ranges::move(found.report.history.evaluations, std::back_inserter(rows));
  for (const train::EvaluationRow& row : rows) report.summary.evaluations[row.name] = row.results;
  report.sections.insert(report.sections.begin(), found.report.sections.begin(), found.report.sections.end());
  report::write_summary(options_.folder / "summary.json", report.summary);
  report::write_report(options_.folder / "report.html", report);
}

}  // namespace

bool follow_run(const FollowOptions& options) {
  return Follower(options).run();
}

}  // namespace tessera::recipe
