// What a training and the process that evaluates it beside exchange: files in the run's folder, each of which
// is there whole or not at all.
#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <optional>
#include <string>

#include "tessera/report/report.h"
#include "tessera/train/trainer.h"

namespace tessera::recipe {

// Weights that wait for their evaluation, by their metadata.
struct WaitingWeights {
  std::filesystem::path path;
  std::string name;  // of the evaluation
  int64_t step = 0;
  double epoch = 0;
  int64_t stage = 0;
  int64_t stage_step = 0;  // with which that began
  int64_t batch = 0;       // of the test data
  std::string recipe;      // TOML
  std::string training;    // which start of the run made them,
  int64_t begin = 0;       // and the step from which it went on
};

// What was found so far: `evaluations` of the history and the `sections` of the last one.
struct FoundResults {
  std::string training;  // of the last weights
  report::Report report;
};

class EvaluationFolder {
 public:
  explicit EvaluationFolder(const std::filesystem::path& run) : path_(run / "evaluation") {}

  const std::filesystem::path& path() const { return path_; }

  // Of the training. Takes away what is of later steps, and all that a run left which never began.
  void begin(int64_t step) const;
  // Throws Error(io).
  void add(const train::DueEvaluation& due, const std::map<std::string, std::string>& metadata) const;
  int64_t waiting() const;
  // The training's own report, with which it says that it has ended.
  void end(const report::Report& report) const;

  // Of the process that evaluates. The oldest weights, which nobody else then gets; those that it had taken
  // before it was killed come first.
  std::optional<WaitingWeights> take() const;
  void remove(const WaitingWeights& weights) const;
  FoundResults results() const;
  void keep(const FoundResults& results) const;
  // The report of a training that has ended.
  std::optional<report::Report> ended() const;

 private:
  std::filesystem::path path_;
};

}  // namespace tessera::recipe
