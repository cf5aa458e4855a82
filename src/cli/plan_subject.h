// A network that is compiled already, in a plan file.
#pragma once

#include <memory>
#include <string>

#include "cli/subject.h"

namespace tessera::cli {

// A file NAME.plan, which `build` wrote.
bool is_plan_file(const std::string& model);

// At one of the plan's batches: the largest unless said. Throws as infer::Plan::open(), and compiling it
// Error(invalid_argument) for a batch that the plan has not, and for options that it settles.
std::unique_ptr<Subject> open_plan(const ModelArguments& arguments);

}  // namespace tessera::cli
