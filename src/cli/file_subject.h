// A network in a file, for inference, with its own weights.
#pragma once

#include <memory>

#include "cli/subject.h"

namespace tessera::cli {

std::unique_ptr<Subject> open_network_file(const ModelArguments& arguments);

}  // namespace tessera::cli
