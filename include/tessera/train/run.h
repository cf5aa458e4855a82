// A whole run from a recipe: data, network, training, and the folder of results.
#pragma once

#include <atomic>
#include <filesystem>
#include <memory>
#include <set>
#include <string>

#include "tessera/data/dataset.h"
#include "tessera/train/recipe.h"
#include "tessera/train/trainer.h"

namespace tessera::train {

struct RunOptions {
  std::filesystem::path folder;             // receives all that the run leaves
  bool resume = false;                      // go on from the folder's last checkpoint
  int64_t max_steps = 0;                    // stop after so many updates in all; 0: no limit
  const std::atomic<bool>* stop = nullptr;  // set from a signal handler
  bool quiet = false;                       // no progress line
  std::set<std::string> asked = {};         // keys that the user named: they may differ from what the run had
};

// Trains and leaves in the folder: recipe.toml, checkpoints/{last,best}.safetensors, model.safetensors
// (weights for inference and exchange), events.out.tfevents.*, summary.json and report.html. An interrupted
// run leaves the checkpoint and no summary. The folder is this run's alone for so long; what is refused
// before the first step leaves it as it was. Throws Error(io) when another run is at work in the folder, when
// it holds a run and `resume` is not set, or a recipe.toml that is not this run's.
FitResult run_recipe(const Recipe& recipe, const RunOptions& options);

// The parts, for evaluation and prediction with what a run left.
models::Model make_model(const Recipe& recipe);
std::shared_ptr<const data::Dataset> make_dataset(const Recipe& recipe, data::Split split);
// Shuffled and augmented as the recipe says.
data::Loader make_training_loader(const Recipe& recipe);
// Without augmentation and shuffling, the last batch padded.
data::Loader make_evaluation_loader(const Recipe& recipe, data::Split split);
// `fallback`, if given, gets why `auto` took no GPU (Device::open).
TrainerOptions make_trainer_options(const Recipe& recipe, std::string* fallback = nullptr);

// The recipe that a run was made from, with the weights it left: a trainer ready to evaluate.
struct FinishedRun {
  Recipe recipe;
  Trainer trainer;
};
FinishedRun open_run(const std::filesystem::path& folder, const std::vector<std::string>& overrides = {});

}  // namespace tessera::train
