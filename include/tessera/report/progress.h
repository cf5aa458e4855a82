// The line that shows how training goes: redrawn in place on a terminal, plain lines elsewhere.
#pragma once

#include <cstdint>
#include <cstdio>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "tessera/nn/task.h"
#include "tessera/train/history.h"

namespace tessera::report {

struct ProgressState {
  int64_t epoch = 1;   // the current one, 1 for the first
  int64_t epochs = 1;  // 0: the data has none, and the steps of an epoch are those of all
  int64_t step = 0;    // finished within the epoch
  int64_t steps_per_epoch = 1;
  train::Numbers measures = {};
  double samples_per_second = train::kNotMeasured;
};

struct ProgressOptions {
  std::vector<nn::Metric> metrics = {};  // what is shown; shares after other numbers
  std::string samples = "samples";       // what a row of a batch is, in the plural
  std::FILE* output = stdout;
  // Unset: whether `output` is a terminal, and how many columns that has at the moment of drawing.
  std::optional<bool> terminal = {};
  std::optional<int> columns = {};
  double terminal_interval = 0.1;      // seconds between two drawings
  double plain_interval = 10.0;        // seconds between two lines where there is no terminal
  std::function<double()> clock = {};  // seconds; empty: a steady clock
};

// Errors of the output are ignored: a run must not die of a closed terminal.
class Progress {
 public:
  explicit Progress(ProgressOptions options = {});
  ~Progress();  // leaves the cursor on a fresh line
  Progress(const Progress&) = delete;
  Progress& operator=(const Progress&) = delete;

  // Call it after every step, it is cheap: it draws at most once per interval. The time left is that of all
  // epochs from the pace since the first update.
  void update(const ProgressState& state);

  // A finished epoch becomes a line that stays: "epoch 2/5  loss 0.31  auc 0.885  test auc 0.879 ...".
  void finish_epoch(const train::EpochRow& row, const std::vector<train::EvaluationRow>& evaluations,
                    int64_t epochs);

  // Prints a line without tearing the one that is being redrawn.
  void print(std::string_view line);

 private:
  void draw(const ProgressState& state, double now);
  void clear();
  int columns() const;

  ProgressOptions options_;
  bool terminal_ = false;
  bool drawn_ = false;  // whether the terminal shows a line that will be redrawn
  double last_drawn_ = 0;
  bool started_ = false;
  double start_time_ = 0;
  double start_steps_ = 0;
};

// The live line in at most `columns` characters, dropping the least important parts first. seconds_left < 0:
// unknown. Of the options it reads what is shown.
std::string progress_line(const ProgressState& state, const ProgressOptions& options, double seconds_left,
                          int columns);

// "8 s", "3 min 05 s", "2 h 07 min".
std::string format_duration(double seconds);

}  // namespace tessera::report
