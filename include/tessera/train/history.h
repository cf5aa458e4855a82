// What a training measured on its way: kept in its state, shown in its report.
#pragma once

#include <cstdint>
#include <limits>
#include <map>
#include <string>
#include <string_view>
#include <vector>

namespace tessera::train {

inline constexpr double kNotMeasured = std::numeric_limits<double>::quiet_NaN();

// By the names of a task's metrics.
using Numbers = std::map<std::string, double>;

// One training step that was sampled; a run keeps some hundreds of them.
struct StepSample {
  int64_t step = 0;       // made, 1 for the first
  double epoch = 0;       // passes over the data made so far, with its fraction
  Numbers measures = {};  // of this step; metrics of all steps since the last sample
  double learning_rate = 0;
  double samples_per_second = 0;
  bool operator==(const StepSample&) const = default;
};

// One finished epoch.
struct EpochRow {
  int64_t stage = 0;         // 0 for the first
  int64_t epoch = 0;         // 1 for the first, counted over all stages
  int64_t step = 0;          // made at its end
  Numbers measures = {};     // means over the epoch
  double learning_rate = 0;  // of its last step
  double samples_per_second = 0;
  double seconds = 0;  // of training, evaluation not counted
  bool operator==(const EpochRow&) const = default;
};

// One evaluation.
struct EvaluationRow {
  std::string name = {};  // "test"
  int64_t step = 0;
  double epoch = 0;  // passes over the training data made until then
  Numbers results = {};
  bool operator==(const EvaluationRow&) const = default;
};

// A setting that a resumed run has otherwise than before: "optimizer.momentum", "0.9", "0.95".
struct SettingChange {
  int64_t step = 0;  // made until then
  std::string key = {};
  std::string before = {};
  std::string after = {};
  bool operator==(const SettingChange&) const = default;
};

struct RunHistory {
  std::vector<StepSample> samples = {};         // by step
  std::vector<EpochRow> epochs = {};            // by epoch
  std::vector<EvaluationRow> evaluations = {};  // in their order
  std::vector<SettingChange> changes = {};      // in their order

  // Drops what lies after `step`: a resumed run goes through those steps again.
  void truncate(int64_t step);
  double train_seconds() const;  // sum over the epochs
  bool operator==(const RunHistory&) const = default;
};

// The history as JSON and back, for the training state that a resumed run starts from; also as it was before
// evaluations had names. NaN becomes null. from_json throws Error(invalid_file) that starts with `name`.
std::string to_json(const RunHistory& history);
RunHistory history_from_json(std::string_view text, std::string_view name);

}  // namespace tessera::train
