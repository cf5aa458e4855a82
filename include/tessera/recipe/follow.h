// Evaluation beside training, by a process of its own that needs the run's folder alone.
#pragma once

#include <atomic>
#include <filesystem>
#include <functional>
#include <string>
#include <vector>

#include "tessera/nn/task.h"
#include "tessera/train/history.h"

namespace tessera::recipe {

struct FollowOptions {
  std::filesystem::path folder;             // of the run, which need not be there yet
  std::vector<std::string> overrides = {};  // as parse_recipe() has them, such as another device
  const std::atomic<bool>* stop = nullptr;  // set from a signal handler
  std::function<void(const nn::Task& task, const train::EvaluationRow& row)> on_evaluation = {};
};

// Evaluates all weights that a run with `train.evaluate_beside` leaves, each once and in their order, until
// the run has ended; waits for it and for them. Keeps the best weights, events, and what was found so far;
// after the last it completes summary.json and report.html. False: it was told to stop; called again, it goes
// on. Throws Error(invalid_argument) where the run evaluates by itself, Error(io) where another process
// evaluates it.
bool follow_run(const FollowOptions& options);

}  // namespace tessera::recipe
