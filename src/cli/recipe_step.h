// What `explain` shows of a recipe: the step that it trains, or what its task serves.
#pragma once

#include <string>
#include <vector>

#include "cli/model_options.h"

namespace tessera::cli {

struct RecipeArguments {
  std::vector<std::string> changes;  // --set
  std::string phase;                 // by its name or objective; "": the first
};

// A file NAME.toml, in place of a network.
bool is_recipe_file(const std::string& model);

// As compile_model(). Data is opened where the step depends on it alone: a table decides how many embeddings
// there are, a folder of images decides nothing. Throws as recipe::parse_recipe() and
// recipe::make_workload(), and Error(invalid_argument) for options that are a network's and for a phase that
// the task has not.
CompiledModel compile_recipe(const ModelArguments& arguments, const RecipeArguments& recipe,
                             std::shared_ptr<Workspace> workspace = nullptr);

// Loads the variables' starting values, and stages the first batch of the recipe's data and learning rates.
void make_recipe_ready(const ModelArguments& arguments, const RecipeArguments& recipe,
                       const CompiledModel& compiled);

}  // namespace tessera::cli
