// What people and TensorBoard see of a run while it goes on.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <vector>

#include "tessera/recipe/recipe.h"
#include "tessera/report/event_log.h"
#include "tessera/report/progress.h"

namespace tessera::recipe {

// The live line and the log of events, fed by the trainer.
class Observer {
 public:
  explicit Observer(bool quiet) : quiet_(quiet) {}

  report::Progress& progress() { return *progress_; }

  void begin(const std::filesystem::path& folder, const Recipe& recipe, int64_t first_step);
  // What comes next is of a stage, by its values.
  void begin_stage(const nn::Task& task, const Options& values, const train::Stage& stage,
                   int64_t batches_per_epoch);
  void step(const train::StepEvent& event);
  void epoch(const train::EpochRow& row, const std::vector<train::EvaluationRow>& evaluations);

 private:
  std::optional<report::Progress> progress_;  // of the stage
  train::Stage stage_;
  std::optional<report::EventLog> events_;
  int64_t epochs_ = 0;  // 0: the stage has so many steps
  int64_t steps_ = 0;   // 0: it has so many epochs
  int64_t steps_per_epoch_ = 0;
  int64_t accumulate_ = 1;
  bool quiet_;
  train::Numbers measures_;
  double rate_ = train::kNotMeasured;
};

}  // namespace tessera::recipe
