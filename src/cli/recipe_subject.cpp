#include "cli/recipe_subject.h"

#include <algorithm>
#include <set>

#include <fmt/ranges.h>

#include "tessera/base/error.h"
#include "tessera/base/file.h"
#include "tessera/base/text.h"
#include "tessera/recipe/run.h"

#include "cli/endless_batches.h"

namespace tessera::cli {
namespace {

// The command's options in the recipe's words.
std::vector<std::string> changes_of(const ModelArguments& arguments) {
  std::vector<std::string> changes = arguments.recipe.changes;
  const auto set = [&](const char* key, const auto& value) {
    changes.push_back(fmt::format("{}={}", key, value));
  };
  if (arguments.batch_given) set("train.batch", arguments.batch);
  if (arguments.recompute.has_value()) set("train.recompute", *arguments.recompute);
  if (arguments.bucket_mib.has_value()) set("train.bucket_mib", *arguments.bucket_mib);
  if (arguments.shard_optimizer) set("train.shard_optimizer", true);
  if (arguments.reduce_type.has_value()) set("train.reduce_type", *arguments.reduce_type);
  if (arguments.delays_gradients) set("train.gradient_delay", 1);
  if (arguments.local_steps > 1) set("train.local_steps", arguments.local_steps);
  if (arguments.collective_blocks > 0) set("train.collective_blocks", arguments.collective_blocks);
  return changes;
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

recipe::Recipe recipe_of(const ModelArguments& arguments) {
  const std::string text = read_text_file(arguments.model);
  std::vector<std::string> changes = changes_of(arguments);
  recipe::Recipe recipe = recipe::parse_recipe(text, arguments.model, changes);
  // Data that is read without work, such as tokens, has no threads to count.
  if (arguments.loader_workers > 0 && recipe::has_key(recipe.task(), "data", "workers")) {
    changes.push_back(fmt::format("data.workers={}", arguments.loader_workers));
    recipe = recipe::parse_recipe(text, arguments.model, changes);
  }
  const int64_t stage = arguments.recipe.stage;
  require(stage <= recipe.stage_count(), ErrorCode::invalid_argument,
          "--stage: there is no stage {} in {}, which has {}", stage, arguments.model, recipe.stage_count());
  return recipe.at_stage(stage - 1);
}

class RecipeSubject : public Subject {
 public:
  explicit RecipeSubject(const ModelArguments& arguments)
      : Subject(arguments),
        recipe_(recipe_of(arguments)),
        workload_(recipe::make_workload(recipe_)),
        training_(recipe::plan_training(recipe_, workload_)) {
    require(arguments.train || arguments.recipe.phase.empty(), ErrorCode::invalid_argument,
            "--phase is of a training step: --train");
  }

  std::string samples() const override { return workload_.task.samples; }
  int64_t accumulated_batches() const override { return training_.accumulate; }
  int64_t local_steps() const override { return training_.local_steps; }

  CompiledModel compile(train::StepKind kind, std::shared_ptr<Workspace> workspace) const override {
    CompileOptions options = compile_options_of(arguments());
    CompiledModel result;
    result.batch = recipe_.values.integer("train.batch");
    open_device(result, workspace);
    if (arguments().train) {
      train::TrainerOptions training = training_;
      training.precision = options.passes.precision;
      options.passes.deterministic = options.passes.deterministic && training.deterministic;
      options.passes.recompute = training.recompute;
      if (training.bucket_bytes.has_value()) options.passes.bucket_bytes = training.bucket_bytes;
      options.most_collective_blocks = training.most_collective_blocks;
      const size_t phase = phase_of(training.phases, arguments().recipe.phase);
      train::StepOptions step = train::step_options(training, *result.device, phase, sizes());
      step.ranks = arguments().ranks;
      step.ranks.batch_norm_ranks = training.batch_norm_ranks;
      result.step = train::build_training_step(workload_.task, step, kind);
    } else {
      result.step = train::build_frozen(workload_.task, train::Reading::inference, sizes());
    }
    compile_graph(result, std::move(options), std::move(workspace));
    return result;
  }

  Feeds inputs(const CompiledModel& compiled) const override {
    const Graph& graph = *compiled.step.graph;
    Feeds inputs = batches(compiled).next(graph).on_host();
    for (const auto& input : graph.inputs()) {
      // What is no field of a batch is a learning rate.
      if (input->role() == InputRole::input)
        inputs.try_emplace(input->name(), Tensor::scalar(DataType::fp32, kLearningRate));
    }
    return inputs;
  }

  std::function<RunFeeds()> loader(const CompiledModel& compiled) const override {
    return [all = std::make_shared<EndlessBatches>(batches(compiled)), &graph = *compiled.step.graph] {
      return all->next(graph);
    };
  }

 private:
  EndlessBatches batches(const CompiledModel& compiled) const {
    const nn::Ranks& ranks = arguments().ranks;
    return {arguments().model, workload_.training(), {ranks.rank, ranks.count}, sizes(), compiled.device};
  }

  // As the data gives them; where only the batch's size is open the recipe says it, and no data is needed.
  SymbolBindings sizes() const {
    std::set<std::string> symbols;
    for (const Field& field : workload_.task.inputs) {
      for (const Dimension& extent : field.type.shape) extent.collect_symbols(symbols);
    }
    if (symbols == std::set<std::string>{"batch"}) return {{"batch", recipe_.values.integer("train.batch")}};
    return workload_.training()->sizes().front();
  }

  recipe::Recipe recipe_;
  train::Workload workload_;
  train::TrainerOptions training_;
};

}  // namespace

bool is_recipe_file(const std::string& model) {
  return model.ends_with(".toml");
}

std::unique_ptr<Subject> open_recipe(const ModelArguments& arguments) {
  return std::make_unique<RecipeSubject>(arguments);
}

}  // namespace tessera::cli
