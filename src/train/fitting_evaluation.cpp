// What one call of Trainer::fit evaluates, and which weights it keeps for it.
#include <algorithm>
#include <utility>

#include "tessera/base/progress.h"
#include "tessera/train/goal.h"

#include "train/fitting.h"

namespace tessera::train {

bool Fitting::evaluation_due(int64_t step) const {
  return std::any_of(
      options_.evaluations.begin(), options_.evaluations.end(),
      [&](const EvaluationPlan& plan) { return plan.every_steps > 0 && step % plan.every_steps == 0; });
}

// False when the run was interrupted meanwhile.
bool Fitting::evaluate_by_steps() {
  for (size_t index = 0; index < options_.evaluations.size(); ++index) {
    const int64_t every = options_.evaluations[index].every_steps;
    if (every == 0 || trainer_.position_.step % every != 0 || hand_over(index, false)) continue;
    const auto began = Clock::now();
    const std::optional<EvaluationRow> row = evaluate(index);
    evaluation_seconds_ += seconds_since(began);
    if (!row.has_value()) return false;
    note(*row);
  }
  batch_start_ = Clock::now();
  return true;
}

// None when the run was interrupted meanwhile.
std::optional<EvaluationRow> Fitting::evaluate(size_t index) {
  const EvaluationPlan& plan = options_.evaluations[index];
  if (stopped()) return std::nullopt;
  std::unique_ptr<Evaluator> evaluator = plan.evaluator();
  trainer_.evaluate(*plan.source, *evaluator, {.samples = plan.samples, .stop = options_.stop});
  if (stopped()) return std::nullopt;
  EvaluationRow row{.name = plan.name,
                    .step = trainer_.position_.step,
                    .epoch = epochs_done(),
                    .results = evaluator->results()};
  result_.evaluations[index] = std::move(evaluator);
  return row;
}

// Keeps an evaluation, and weights that are the best so far by the first of them.
void Fitting::note(const EvaluationRow& row) {
  trainer_.history_.evaluations.push_back(row);
  if (!writer_.enabled() || row.name != options_.evaluations.front().name) return;
  const nn::Metric* const goal = goal_metric(trainer_.task_.metrics, row.results, options_.goal);
  if (goal == nullptr) return;
  const double result = row.results.at(goal->name);
  if (is_better(*goal, result, trainer_.best_) && writer_.save_best(trainer_.checkpoint_source()))
    trainer_.best_ = result;
}

// Whether somebody else evaluates, who is then told.
bool Fitting::hand_over(size_t index, bool last) {
  const EvaluationPlan& plan = options_.evaluations[index];
  if (!plan.elsewhere) return false;
  const LongWork saving;
  const Position& position = trainer_.position_;
  plan.elsewhere({.name = plan.name,
                  .step = position.step,
                  .epoch = epochs_done(),
                  .stage = position.stage,
                  .last = last,
                  .weights = trainer_.checkpoint_source()});
  return true;
}

}  // namespace tessera::train
