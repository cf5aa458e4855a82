// Options that bench, explain and profile share: which network, at what size, on which device.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>

#include "tessera/compile/communicator.h"
#include "tessera/compile/executable.h"
#include "tessera/models/model.h"
#include "tessera/train/step.h"

#include "cli/commands.h"

namespace tessera::cli {

struct ModelArguments {
  std::string model;
  int64_t batch = 32;
  bool batch_given = false;
  bool train = false;
  std::string device = "auto";
  std::string precision = "fp32";
  int64_t image_size = 0;  // 0: the network's own
  int64_t classes = 0;
  std::map<std::string, int64_t> sizes = {};  // of a network in a file: what its shapes leave open
  bool tune = false;
  std::string tuning_file;
  std::vector<std::string> disabled_passes;
  bool nondeterministic = false;
  std::optional<bool> recompute = {};  // PassOptions::recompute
  bool bytes = false;                  // a training step's images, as loaders give them
  // Of a training step that several ranks make together, each with a batch like this one.
  nn::Ranks ranks = {};
  std::shared_ptr<Communicator> communicator = {};   // none: the step is planned and not run
  std::optional<double> bucket_mib = {};             // PassOptions::bucket_bytes
  bool shard_optimizer = false;                      // StepOptions::shard_optimizer
  std::string reduce_type = "fp32";                  // StepOptions::reduce_type
  bool delays_gradients = false;                     // StepOptions::gradient_delay of 1
  int64_t local_steps = 1;                           // StepOptions::local_steps, and of those
  train::StepKind kind = train::StepKind::updating;  // this one
  int64_t collective_blocks = 0;                     // CompileOptions::most_collective_blocks
};

void add_model_arguments(CLI::App& command, ModelArguments& arguments);

// As the environment of a launcher says, if there is one: each with a GPU of its own. Throws
// Error(invalid_argument) where it is neither a training step that they would make nor a file, whose graph
// says what they exchange.
void join_ranks(ModelArguments& arguments);

// Throws Error(invalid_argument) for a network in a file, of which nothing is known beyond its graph.
models::Model make_model(const ModelArguments& arguments);

// Of the training step that they compile.
inline constexpr double kLearningRate = 1e-4;

CompileOptions compile_options_of(const ModelArguments& arguments);

// The training step or the inference graph, compiled, with its variables' starting values.
struct CompiledModel {
  train::StepGraph step;
  std::shared_ptr<Device> device;
  std::string fallback;  // why `auto` took no GPU, or ""
  std::unique_ptr<Executable> executable;
  int64_t batch = 0;
  std::map<std::string, Tensor> weights = {};  // of a network in a file
};
// In that workspace, on its device, or in one of its own.
CompiledModel compile_model(const ModelArguments& arguments, std::shared_ptr<Workspace> workspace = nullptr);

// Throws Error(internal) where the model has no such variable.
Tensor starting_value(const CompiledModel& compiled, const std::string& name);

// A tensor for each input that a run takes, filled one by one.
std::map<std::string, Tensor> make_inputs(
    const Graph& graph, const std::function<void(const Value& input, Tensor& tensor)>& fill);

// Starting values, or a file's. Throws Error(invalid_argument) where a file lacks some.
void load_variables(const ModelArguments& arguments, const CompiledModel& compiled);

// Random images, labels and a learning rate: as the peers of bench/compare have theirs, the images lie where
// the device reads them. Runs need no inputs then.
void stage_inputs(const ModelArguments& arguments, const CompiledModel& compiled);

// Loads variables and stages inputs.
void make_ready(const ModelArguments& arguments, const CompiledModel& compiled);

}  // namespace tessera::cli
