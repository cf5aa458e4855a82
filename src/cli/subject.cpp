#include "cli/subject.h"

#include <algorithm>
#include <array>

#include "tessera/base/error.h"
#include "tessera/base/fill.h"
#include "tessera/base/random.h"
#include "tessera/train/checkpoint.h"

#include "cli/file_subject.h"
#include "cli/recipe_subject.h"

namespace tessera::cli {

std::function<RunFeeds()> Subject::loader(const CompiledModel& compiled) const {
  fail(ErrorCode::invalid_argument, "--loader: '{}' comes without data", compiled.name);
}

void Subject::open_device(CompiledModel& compiled, const std::shared_ptr<Workspace>& workspace,
                          const std::string& device) const {
  compiled.name = arguments_.model;
  const Clock::time_point begin = Clock::now();
  compiled.device = workspace != nullptr ? workspace->device() : Device::open(device, &compiled.fallback);
  compiled.opening_seconds = seconds_since(begin);
}

void Subject::compile_graph(CompiledModel& compiled, CompileOptions options,
                            std::shared_ptr<Workspace> workspace) {
  options.workspace = std::move(workspace);
  compiled.executable = tessera::compile(*compiled.step.graph, compiled.device, options);
}

std::unique_ptr<Subject> open_subject(const ModelArguments& arguments) {
  const bool is_recipe = is_recipe_file(arguments.model);
  const bool is_file = is_network_file(arguments.model);
  require(is_recipe || (arguments.recipe.changes.empty() && arguments.recipe.phase.empty()),
          ErrorCode::invalid_argument, "--set and --phase are of a recipe, and '{}' is none",
          arguments.model);
  require(is_file || arguments.sizes.empty(), ErrorCode::invalid_argument,
          "--size is of a network in a file, and '{}' is a {}", arguments.model,
          is_recipe ? "recipe" : "network by name");
  if (is_recipe || is_file) refuse_network_options(arguments);
  if (is_recipe) return open_recipe(arguments);
  if (is_file) return open_network_file(arguments);
  return open_named_network(arguments);
}

Tensor starting_value(const CompiledModel& compiled, const std::string& name) {
  if (const auto weight = compiled.weights.find(name); weight != compiled.weights.end())
    return weight->second;
  const std::vector<nn::Variable>& list = compiled.step.variables;
  const auto found =
      std::find_if(list.begin(), list.end(), [&](const nn::Variable& one) { return one.name == name; });
  require(found != list.end(), ErrorCode::invalid_argument,
          "{}: '{}' is a variable, and nothing says what it starts with", compiled.name, name);
  return train::starting_value(*found, 1);
}

Feeds make_inputs(const Graph& graph, const std::function<void(const Value& input, Tensor& tensor)>& fill) {
  Feeds inputs;
  for (const auto& input : graph.inputs()) {
    if (input->role() != InputRole::input) continue;
    Tensor tensor(input->data_type(), input->type().static_shape());
    fill(*input, tensor);
    inputs.emplace(input->name(), std::move(tensor));
  }
  return inputs;
}

void fill_synthetic(Tensor& tensor, const std::string& name, int64_t limit) {
  const Random random(1, hash_name(name.data(), name.size()));
  const bool floating = is_floating(tensor.data_type());
  const auto bound = static_cast<uint64_t>(limit);
  fill_by_blocks(tensor, [&](uint64_t block) {
    if (floating) return random.normals(block);
    std::array<double, 4> numbers{};
    for (uint64_t i = 0; i < numbers.size(); ++i)
      numbers[i] = static_cast<double>(random.below(numbers.size() * block + i, bound));
    return numbers;
  });
}

Feeds synthetic_inputs(const Graph& graph, int64_t limit) {
  return make_inputs(graph, [&](const Value& input, Tensor& tensor) {
    if (input.name() == "learning_rate") {
      tensor.set(0, kLearningRate);
    } else {
      fill_synthetic(tensor, input.name(), limit);
    }
  });
}

void make_ready(const Subject& subject, const CompiledModel& compiled) {
  compiled.executable->load([&](const std::string& name) { return starting_value(compiled, name); });
  compiled.executable->stage(subject.inputs(compiled));
}

}  // namespace tessera::cli
