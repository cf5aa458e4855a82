// One call of Trainer::fit.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "tessera/base/clock.h"
#include "tessera/train/trainer.h"

#include "train/checkpoint_writer.h"
#include "train/measure_sums.h"
#include "train/over_ranks.h"

namespace tessera::train {

class Fitting {
 public:
  // Checks and compiles all; throws Error(invalid_argument) on what does not fit, before anything is changed.
  Fitting(Trainer& trainer, const data::Source& source, const FitOptions& options);

  FitResult run();

 private:
  // A phase's work on one batch.
  struct Turn {
    size_t phase = 0;
    bool updating = false;
    int64_t repeat = 0;  // which of the phase's updates within a step
    bool last = false;   // of the phase's updates
  };
  // A batch that the device has, its outputs not received yet.
  struct Submitted {
    struct Run {
      Turn turn;
      StepKind kind = StepKind::updating;
      std::shared_ptr<Executable> executable;
      std::shared_ptr<const Trainer::StepNames> names;
      RunFeeds inputs;
    };
    std::vector<Run> runs;
    SymbolBindings sizes;
    int64_t samples = 0;
    double learning_rate = 0;
    bool completes_step = false;
    Position position;  // after it
  };

  void plan_turns();
  void plan_length();
  void make_schedules();
  void prepare();
  Tensor rate_input(size_t phase, size_t group, int64_t update) const;

  static int64_t steps_made(const Position& position) { return position.step - position.stage.step; }
  bool told_to_stop() const { return options_.stop != nullptr && options_.stop->load(); }
  // One rank that is told to stop stops all, at the same step.
  bool stopped() const { return agreed(trainer_.communicator(), {.stop = told_to_stop()}).stop; }
  bool averages(const Position& position) const;
  bool may_save(const Position& position) const;
  Agreement before_batch(const Position& position) const;
  bool complete(const Position& position) const;
  bool batches_left(const Position& position) const;

  bool run_epoch();  // false when the run was interrupted within the epoch
  bool end_epoch();
  Submitted submit(const data::Batch& batch, Position position);
  void receive(const Submitted& submitted);
  void check_finite(const Submitted& submitted, const Submitted::Run& run, const Feeds& outputs);
  void sample(const Numbers& objectives, const StepEvent& event);
  double epochs_done() const;
  bool evaluation_due(int64_t step) const;
  bool evaluate_by_steps();
  bool hand_over(size_t index, bool last);
  std::optional<EvaluationRow> evaluate(size_t index);
  void note(const EvaluationRow& row);
  void save_state(bool must);

  Trainer& trainer_;
  const data::Source& source_;
  const FitOptions options_;
  std::vector<std::vector<Turn>> turns_;                 // of each batch that makes part of a step
  std::vector<std::vector<optim::Schedule>> schedules_;  // of each phase and group
  int64_t batches_ = 0;      // of an epoch, in whole steps; 0 where the data does not end
  int64_t total_steps_ = 0;  // of the stage
  CheckpointWriter writer_;
  FitResult result_;
  std::vector<int64_t> skipped_;  // by phase: updates in a row whose gradients overflowed
  double learning_rate_ = 0;
  // Since the epoch began, or was entered.
  MeasureSums epoch_sums_;
  int64_t epoch_samples_ = 0;
  Clock::time_point epoch_start_;
  Clock::time_point batch_start_;
  double evaluation_seconds_ = 0;
  MeasureSums sample_sums_;  // since the last sample of the history
};

}  // namespace tessera::train
