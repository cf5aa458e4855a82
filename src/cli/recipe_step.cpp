#include "cli/recipe_step.h"

#include <algorithm>
#include <set>

#include <fmt/ranges.h>

#include "tessera/base/error.h"
#include "tessera/base/file.h"
#include "tessera/base/text.h"
#include "tessera/recipe/run.h"

namespace tessera::cli {
namespace {

struct OpenRecipe {
  recipe::Recipe recipe;
  train::Workload workload;
};

OpenRecipe open_recipe(const ModelArguments& arguments, const RecipeArguments& recipe) {
  require(arguments.image_size == 0 && arguments.classes == 0, ErrorCode::invalid_argument,
          "--image-size and --classes are for networks: of a recipe, --set data.image_size=... and the like");
  std::vector<std::string> changes = recipe.changes;
  if (arguments.batch_given) changes.push_back(fmt::format("train.batch={}", arguments.batch));
  recipe::Recipe read = recipe::parse_recipe(read_text_file(arguments.model), arguments.model, changes);
  train::Workload workload = recipe::make_workload(read);
  return {std::move(read), std::move(workload)};
}

// As the data gives them; where only the batch's size is open the recipe says it, and no data is needed.
SymbolBindings sizes_of(const OpenRecipe& open) {
  std::set<std::string> symbols;
  for (const Field& field : open.workload.task.inputs) {
    for (const Dimension& extent : field.type.shape) extent.collect_symbols(symbols);
  }
  if (symbols == std::set<std::string>{"batch"})
    return {{"batch", open.recipe.values.integer("train.batch")}};
  return open.workload.training()->sizes().front();
}

size_t phase_of(const std::vector<train::Phase>& phases, const std::string& name) {
  if (name.empty()) return 0;
  std::vector<std::string> names;
  for (const train::Phase& phase : phases) names.push_back(phase.name.empty() ? phase.objective : phase.name);
  const auto found = std::ranges::find(names, name);
  if (found != names.end()) return static_cast<size_t>(found - names.begin());
  fail(ErrorCode::invalid_argument, "--phase: there is no phase '{}'{} (phases: {})", name,
       did_you_mean(name, names),
       names.empty() ? "one, without a name" : fmt::format("{}", fmt::join(names, ", ")));
}

}  // namespace

bool is_recipe_file(const std::string& model) {
  return model.ends_with(".toml");
}

CompiledModel compile_recipe(const ModelArguments& arguments, const RecipeArguments& recipe,
                             std::shared_ptr<Workspace> workspace) {
  const OpenRecipe open = open_recipe(arguments, recipe);
  CompileOptions options = compile_options_of(arguments);
  CompiledModel result;
  result.batch = open.recipe.values.integer("train.batch");
  result.device =
      workspace != nullptr ? workspace->device() : Device::open(arguments.device, &result.fallback);
  if (arguments.train) {
    train::TrainerOptions training = recipe::plan_training(open.recipe, open.workload);
    training.precision = options.passes.precision;
    options.passes.deterministic = options.passes.deterministic && training.deterministic;
    if (!options.passes.recompute.has_value()) options.passes.recompute = training.recompute;
    const size_t phase = phase_of(training.phases, recipe.phase);
    train::StepOptions step = train::step_options(training, *result.device, phase, sizes_of(open));
    step.ranks = arguments.ranks;
    step.ranks.batch_norm_ranks = training.batch_norm_ranks;
    result.step = train::build_training_step(open.workload.task, step);
  } else {
    require(recipe.phase.empty(), ErrorCode::invalid_argument, "--phase is of a training step: --train");
    result.step = train::build_frozen(open.workload.task, train::Reading::inference, sizes_of(open));
  }
  options.workspace = std::move(workspace);
  result.executable = compile(*result.step.graph, result.device, options);
  return result;
}

void make_recipe_ready(const ModelArguments& arguments, const RecipeArguments& recipe,
                       const CompiledModel& compiled) {
  compiled.executable->load([&](const std::string& name) { return starting_value(compiled, name); });
  const auto source = open_recipe(arguments, recipe).workload.training();
  const std::optional<data::Batch> batch = source->open({})->next();
  require(batch.has_value(), ErrorCode::invalid_argument, "{}: the data has not one batch", arguments.model);
  Feeds inputs;
  for (const auto& input : compiled.step.graph->inputs()) {
    if (input->role() != InputRole::input) continue;
    const auto field = batch->fields.find(input->name());
    // What is no field of a batch is a learning rate.
    inputs.emplace(input->name(), field != batch->fields.end()
                                      ? field->second
                                      : Tensor::scalar(DataType::fp32, kLearningRate));
  }
  compiled.executable->stage(inputs);
}

}  // namespace tessera::cli
