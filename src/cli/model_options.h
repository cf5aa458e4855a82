// Options that bench and explain share: which network, at what size, on which device.
#pragma once

#include <memory>
#include <string>

#include "tessera/compile/executable.h"
#include "tessera/models/model.h"
#include "tessera/train/step.h"

#include "cli/commands.h"

namespace tessera::cli {

struct ModelArguments {
  std::string model;
  int64_t batch = 32;
  bool train = false;
  std::string device = "auto";
  std::string precision = "fp32";
  int64_t image_size = 0;  // 0: the network's own
  int64_t classes = 0;
  bool tune = false;
  std::string tuning_file;
  std::vector<std::string> disabled_passes;
  bool nondeterministic = false;
};

void add_model_arguments(CLI::App& command, ModelArguments& arguments);

models::Model make_model(const ModelArguments& arguments);

// Of the training step that bench and explain compile.
inline constexpr double kLearningRate = 1e-4;

// The training step or the inference graph, compiled, with its variables' starting values.
struct CompiledModel {
  train::StepGraph step;
  std::shared_ptr<Device> device;
  std::unique_ptr<Executable> executable;
};
CompiledModel compile_model(const ModelArguments& arguments);

// Random images, labels and a learning rate for every input of the graph.
std::map<std::string, Tensor> made_up_inputs(const Graph& graph, int64_t classes);

}  // namespace tessera::cli
