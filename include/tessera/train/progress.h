// The line that shows how training goes: redrawn in place on a terminal, plain lines elsewhere.
#pragma once

#include <cstdint>
#include <cstdio>
#include <functional>
#include <optional>
#include <string>
#include <string_view>

#include "tessera/train/summary.h"

namespace tessera::train {

struct ProgressState {
  int64_t epoch = 1;  // the current one, 1 for the first
  int64_t epochs = 1;
  int64_t step = 0;  // finished within the epoch
  int64_t steps_per_epoch = 1;
  double loss = kNotMeasured;
  double accuracy = kNotMeasured;  // 0..1
  double images_per_second = kNotMeasured;
};

struct ProgressOptions {
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

  // A finished epoch becomes a line that stays: "epoch 2/5  loss 0.31  accuracy 88.5 %  test 87.9 %  ...".
  void finish_epoch(const EpochRow& row, int64_t epochs);

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
// unknown.
std::string progress_line(const ProgressState& state, double seconds_left, int columns);

// "8 s", "3 min 05 s", "2 h 07 min".
std::string format_duration(double seconds);

}  // namespace tessera::train
