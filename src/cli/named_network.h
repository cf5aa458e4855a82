// Networks by name, which all take images and say classes: their options, and how bench, explain and profile
// come by them.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include <CLI/CLI.hpp>

#include "tessera/models/model.h"
#include "tessera/nn/task.h"

namespace tessera::cli {

class Subject;
struct ModelArguments;

struct NamedNetworkArguments {
  int64_t image_size = 0;  // 0: the network's own
  int64_t classes = 0;
};

void add_network_options(CLI::App& command, NamedNetworkArguments& arguments);
// Throws Error(invalid_argument) where they are given: `arguments` are of another kind of model.
void refuse_network_options(const ModelArguments& arguments);

// On random images and labels, as the peers of bench/compare have theirs.
std::unique_ptr<Subject> open_named_network(const ModelArguments& arguments);

// The network that the arguments name, in their size.
models::Model named_network(const ModelArguments& arguments);
// What such a network is trained for, on inputs of fp32.
nn::Task task_of_network(const std::string& name);

}  // namespace tessera::cli
