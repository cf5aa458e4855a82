// Options that bench, explain and profile share: what they look at, at what size, on which device.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "tessera/compile/communicator.h"
#include "tessera/compile/executable.h"
#include "tessera/train/step.h"

#include "cli/commands.h"
#include "cli/named_network.h"

namespace tessera::cli {

struct RecipeArguments {
  std::vector<std::string> changes;  // --set
  std::string phase;                 // by its name or objective; "": the first
  int64_t stage = 1;                 // 1 for the first
};

struct ModelArguments {
  std::string model;
  int64_t batch = 32;
  bool batch_given = false;
  bool train = false;
  std::string device = "auto";
  std::string precision = "fp32";
  NamedNetworkArguments network = {};
  SymbolBindings sizes = {};  // of a network in a file: what its shapes leave open
  RecipeArguments recipe = {};
  bool tune = false;
  std::string tuning_file;
  std::vector<std::string> disabled_passes;
  bool nondeterministic = false;
  std::optional<bool> recompute = {};  // PassOptions::recompute
  int64_t loader_workers = 0;          // whose batches a training step takes; 0: there is no loader
  std::string loader_files;            // a folder that it reads; "": its samples are synthetic
  double loader_cpu_share = 0;         // of those that the device would decode
  // Of a training step that several ranks make together, each with a batch like this one.
  nn::Ranks ranks = {};
  std::shared_ptr<Communicator> communicator = {};  // none: the step is planned and not run
  std::optional<double> bucket_mib = {};            // PassOptions::bucket_bytes
  bool shard_optimizer = false;                     // StepOptions::shard_optimizer
  std::optional<std::string> reduce_type = {};      // StepOptions::reduce_type
  bool delays_gradients = false;                    // StepOptions::gradient_delay of 1
  int64_t local_steps = 1;                          // StepOptions::local_steps
  int64_t collective_blocks = 0;                    // CompileOptions::most_collective_blocks
};

// The network, and how it is compiled: what `build` takes, too.
void add_network_arguments(CLI::App& command, ModelArguments& arguments);
// With its batch, and what is of a training step.
void add_model_arguments(CLI::App& command, ModelArguments& arguments);

// Of a training step that a loader feeds. Returns the option that says so.
CLI::Option* add_loader_arguments(CLI::App& command, ModelArguments& arguments);

// As the environment of a launcher says, if there is one: each with a GPU of its own. Throws
// Error(invalid_argument) where it is neither a training step that they would make nor a file, whose graph
// says what they exchange.
void join_ranks(ModelArguments& arguments);

// Of the training step that they compile.
inline constexpr double kLearningRate = 1e-4;

CompileOptions compile_options_of(const ModelArguments& arguments);

}  // namespace tessera::cli
