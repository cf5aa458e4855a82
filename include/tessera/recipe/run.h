// A whole run from a recipe: data, network, training, and the folder of results.
#pragma once

#include <atomic>
#include <filesystem>
#include <functional>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "tessera/recipe/recipe.h"
#include "tessera/train/trainer.h"
#include "tessera/train/workload.h"

namespace tessera::recipe {

struct RunOptions {
  std::filesystem::path folder;             // receives all that the run leaves
  bool resume = false;                      // go on from the folder's last checkpoint
  int64_t max_steps = 0;                    // stop after so many updates in all; 0: no limit
  const std::atomic<bool>* stop = nullptr;  // set from a signal handler
  bool quiet = false;                       // no progress line
  std::set<std::string> asked = {};         // keys that the user named: they may differ from what the run had
  // Of the ranks that run this recipe together; none: alone. Each makes its part of every batch; rank 0 alone
  // writes into the folder.
  std::shared_ptr<Communicator> communicator = {};
  // Called when all is checked and compiled and the folder is there, before the first step.
  std::function<void()> on_begin = {};
};

struct RunResult {
  nn::Task task;
  train::FitResult fit;

  // The newest row of each evaluation.
  std::vector<train::EvaluationRow> last_evaluations() const;
};

// Trains and leaves in the folder: recipe.toml, checkpoints/{last,best}.safetensors, model.safetensors
// (weights for inference and exchange), events.out.tfevents.*, summary.json and report.html. An interrupted
// run leaves the checkpoint and no summary. The folder is this run's alone for so long; what is refused
// before the first step leaves it as it was. What one of several ranks throws ends all. Throws Error(io) when
// another run is at work in the folder, when it holds a run and `resume` is not set, or a recipe.toml that is
// not this run's.
RunResult run_recipe(const Recipe& recipe, const RunOptions& options);

// The parts, for evaluation and prediction with what a run left. What is trained, on which data: the training
// shuffled and augmented as the recipe says, the test neither, its last batch filled up.
train::Workload make_workload(const Recipe& recipe);
// Of so many steps in all, so many of them in an epoch.
optim::Schedule make_schedule(const Recipe& recipe, int64_t total_steps, int64_t steps_per_epoch);
// The one that the recipe names, with its threads. `fallback`, if given, gets why `auto` took no GPU
// (Device::open).
std::shared_ptr<Device> open_device(const Recipe& recipe, std::string* fallback = nullptr);
train::TrainerOptions make_trainer_options(const Recipe& recipe, std::string* fallback = nullptr);
// The same in the phases of the recipe's task, on no device yet.
train::TrainerOptions plan_training(const Recipe& recipe, const train::Workload& workload);

// The workload of the recipe that a run was made from, with the weights it left: a trainer ready to evaluate.
// `checkpoint`: a state that it saved on its way, in place of them. `communicator`: of the ranks that
// evaluate together, which must have the same run; none: alone.
struct FinishedRun {
  train::Workload workload;
  train::Trainer trainer;
};
FinishedRun open_run(const std::filesystem::path& folder, const std::vector<std::string>& overrides = {},
                     const std::filesystem::path& checkpoint = {},
                     const std::shared_ptr<Communicator>& communicator = {});

}  // namespace tessera::recipe
