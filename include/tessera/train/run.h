// A whole run from a recipe: data, network, training, and the folder of results.
#pragma once

#include <atomic>
#include <filesystem>
#include <memory>

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
};

// Trains and leaves in the folder: recipe.toml, checkpoints/{last,best}.safetensors, model.safetensors
// (weights for inference and exchange), events.out.tfevents.*, summary.json and report.html. An interrupted
// run leaves the checkpoint and no summary. Throws Error(io) when the folder holds another run and `resume`
// is not set.
FitResult run_recipe(const Recipe& recipe, const RunOptions& options);

// The parts, for evaluation and prediction with what a run left.
models::Model make_model(const Recipe& recipe);
std::shared_ptr<const data::Dataset> make_dataset(const Recipe& recipe, data::Split split);
// Without augmentation and shuffling, the last batch padded.
data::Loader make_evaluation_loader(const Recipe& recipe, data::Split split);
TrainerOptions make_trainer_options(const Recipe& recipe);

// The recipe that a run was made from, with the weights it left: a trainer ready to evaluate.
struct FinishedRun {
  Recipe recipe;
  Trainer trainer;
};
FinishedRun open_run(const std::filesystem::path& folder, const std::vector<std::string>& overrides = {});

}  // namespace tessera::train
