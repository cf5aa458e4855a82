// A network in a file, for inference, with its own weights: to be compiled, or a plan.
#pragma once

#include <memory>
#include <string>

#include "cli/subject.h"

namespace tessera::cli {

// Whether it ends as such a file does.
bool is_network_file(const std::string& model);

std::unique_ptr<Subject> open_network_file(const ModelArguments& arguments);

}  // namespace tessera::cli
