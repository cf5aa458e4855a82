#include "recipe/run_observer.h"

#include <cmath>

namespace tessera::recipe {
namespace {

double smooth(double average, double value) {
  return 0.95 * average + 0.05 * value;
}

}  // namespace

void Observer::begin(const std::filesystem::path& folder, const Recipe& recipe, int64_t first_step) {
  events_.emplace(folder, first_step);
  events_->text("recipe", to_toml(recipe));
}

void Observer::begin_stage(const nn::Task& task, const Options& values, const train::Stage& stage,
                           int64_t batches_per_epoch) {
  progress_.emplace(report::ProgressOptions{.metrics = task.metrics, .samples = task.samples});
  stage_ = stage;
  measures_.clear();
  rate_ = train::kNotMeasured;
  accumulate_ = values.integer("train.accumulate");
  steps_ = values.integer("train.steps");
  epochs_ = steps_ > 0 ? 0 : values.integer("train.epochs");
  steps_per_epoch_ = batches_per_epoch / accumulate_;
}

void Observer::step(const train::StepEvent& event) {
  events_->step(event);
  if (quiet_) return;
  for (const auto& [measure, mean] : event.measures) {
    const auto known = measures_.emplace(measure, mean).first;
    known->second = smooth(known->second, mean);
  }
  rate_ = std::isnan(rate_) ? event.samples_per_second : smooth(rate_, event.samples_per_second);
  report::ProgressState state{.measures = measures_, .samples_per_second = rate_};
  if (steps_ > 0) {
    state.epochs = 0;
    state.step = event.position.step - stage_.step;
    state.steps_per_epoch = steps_;
  } else {
    state.epoch = event.position.epoch - stage_.epoch + 1;
    state.epochs = epochs_;
    state.step = event.position.batch / accumulate_;
    state.steps_per_epoch = steps_per_epoch_;
  }
  progress_->update(state);
}

void Observer::epoch(const train::EpochRow& row, const std::vector<train::EvaluationRow>& evaluations) {
  events_->epoch(row, evaluations);
  if (quiet_) return;
  train::EpochRow of_stage = row;
  of_stage.epoch -= stage_.epoch;
  progress_->finish_epoch(of_stage, evaluations, epochs_);
}

}  // namespace tessera::recipe
