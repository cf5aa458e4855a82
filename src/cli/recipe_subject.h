// A recipe: the step that it trains, or what its task serves.
#pragma once

#include <memory>
#include <string>

#include "cli/subject.h"

namespace tessera::cli {

// A file NAME.toml, in place of a network.
bool is_recipe_file(const std::string& model);

// Data is opened where the step depends on it alone (a table decides how many embeddings there are, a folder
// of files decides nothing), and for inputs: those of its first batch. Throws as recipe::parse_recipe() and
// recipe::make_workload(); compiling it, Error(invalid_argument) for a phase that the task has not.
std::unique_ptr<Subject> open_recipe(const ModelArguments& arguments);

}  // namespace tessera::cli
