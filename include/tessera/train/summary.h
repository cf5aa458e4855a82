// What a run leaves for tools and for its report: summary.json and the history of its steps and epochs.
#pragma once

#include <cstdint>
#include <filesystem>
#include <limits>
#include <map>
#include <string>
#include <string_view>
#include <vector>

namespace tessera::train {

inline constexpr double kNotMeasured = std::numeric_limits<double>::quiet_NaN();

// One training step that was sampled; a run keeps some hundreds of them.
struct StepSample {
  int64_t step = 0;  // updates made, 1 for the first
  double epoch = 0;  // passes over the data made so far, with its fraction
  double loss = kNotMeasured;
  double accuracy = kNotMeasured;  // of the training batches since the last sample, 0..1
  double learning_rate = 0;
  double images_per_second = 0;
  bool operator==(const StepSample&) const = default;
};

// One finished epoch. What was not evaluated is NaN.
struct EpochRow {
  int64_t epoch = 0;  // 1 for the first
  int64_t step = 0;   // updates made at its end
  double train_loss = kNotMeasured;
  double train_accuracy = kNotMeasured;  // 0..1
  double test_loss = kNotMeasured;
  double test_accuracy = kNotMeasured;
  double learning_rate = 0;  // of its last step
  double images_per_second = 0;
  double seconds = 0;  // of training, evaluation not counted
  bool operator==(const EpochRow&) const = default;
};

// A setting that a resumed run has otherwise than before: "optimizer.momentum", "0.9", "0.95".
struct SettingChange {
  int64_t step = 0;  // updates made until then
  std::string key = {};
  std::string before = {};
  std::string after = {};
  bool operator==(const SettingChange&) const = default;
};

struct RunHistory {
  std::vector<StepSample> samples = {};     // by step
  std::vector<EpochRow> epochs = {};        // by epoch
  std::vector<SettingChange> changes = {};  // in their order

  // Drops what lies after `step`: a resumed run goes through those steps again.
  void truncate(int64_t step);
  double train_seconds() const;  // sum over the epochs
  bool operator==(const RunHistory&) const = default;
};

// The history as JSON and back, for the training state that a resumed run starts from. NaN becomes null.
// from_json throws Error(invalid_file) that starts with `name`.
std::string to_json(const RunHistory& history);
RunHistory history_from_json(std::string_view text, std::string_view name);

// The contents of summary.json.
struct RunSummary {
  std::string device = {};     // "cpu"
  std::string precision = {};  // "fp32": what was computed in, also where the recipe left it to the device
  std::string network = {};    // "resnet_small"
  int64_t parameters = 0;
  int64_t epochs = 0;
  double test_accuracy = kNotMeasured;  // 0..1
  double train_seconds = 0;
  double images_per_second = 0;
  std::map<std::string, std::string> versions = {};  // {"tessera": "0.1.0", "onednn": "3.2.0"}
};

// Pretty-printed, with the members' names as keys; NaN becomes null.
std::string to_json(const RunSummary& summary);

// Writes it complete or not at all; throws Error(io).
void write_summary(const std::filesystem::path& path, const RunSummary& summary);

}  // namespace tessera::train
