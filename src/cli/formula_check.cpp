#include "cli/formula_check.h"

#include <algorithm>
#include <map>

#include <fmt/format.h>

#include "tessera/base/error.h"
#include "tessera/models/formula.h"

#include "cli/file_subject.h"
#include "cli/recipe_subject.h"
#include "cli/step_cycle.h"

namespace tessera::cli {
namespace {

constexpr int64_t kShown = 10;

// Batch 0 of the formula is the one of the golden values.
Feeds batch_by_formula(const models::Model& model, int64_t size, int64_t index) {
  const std::string suffix = index == 0 ? "" : fmt::format(".{}", index);
  return {{"images", models::formula::images("input" + suffix, model.input_type(size).static_shape())},
          {"labels", models::formula::labels("labels" + suffix, size, model.options.classes)}};
}

std::vector<double> losses_of_steps(const CheckOptions& options, const models::Model& model,
                                    const StepCycle& cycle) {
  std::vector<Feeds> batches;
  for (int64_t index = 0; index < std::min(options.batches, options.steps); ++index) {
    batches.push_back(batch_by_formula(model, cycle.first().batch, index));
    batches.back()["learning_rate"] = Tensor::scalar(DataType::fp32, options.learning_rate);
  }
  std::vector<double> losses;
  for (int64_t step = 0; step < options.steps; ++step) {
    const auto& batch = batches[static_cast<size_t>(step) % batches.size()];
    losses.push_back(train::mean_of(cycle.at(step).run(batch), "loss"));
  }
  return losses;
}

// As many as are shown, from all of them at equal distances.
std::vector<double> spread(const std::vector<double>& all) {
  const int64_t size = std::ssize(all);
  const int64_t count = std::min(kShown, size);
  std::vector<double> chosen;
  for (int64_t i = 0; i < count; ++i) chosen.push_back(all[static_cast<size_t>(i * size / count)]);
  return chosen;
}

// Inputs by the formula of their names.
CheckedValues check_file(const Subject& subject, const CheckOptions& options) {
  const CompiledModel compiled = subject.compile();
  compiled.executable->load([&](const std::string& name) { return starting_value(compiled, name); });
  const Graph& graph = *compiled.step.graph;
  const Feeds outputs = compiled.executable->run(make_inputs(graph, [&](const Value& input, Tensor& tensor) {
    for (int64_t i = 0; i < tensor.size(); ++i) {
      const auto index = static_cast<uint64_t>(i);
      tensor.set(i, is_floating(input.data_type())
                        ? models::formula::uniform(input.name(), index)
                        : static_cast<double>(models::formula::label(input.name(), index, options.below)));
    }
  }));
  return {"outputs", spread(outputs.at(graph.outputs().front().name).to_doubles())};
}

CheckedValues check_network(const Subject& subject, const CheckOptions& options) {
  const models::Model model = named_network(subject.arguments());
  const StepCycle cycle(subject);
  const std::map<std::string, Tensor> weights = models::formula::weights(models::build(model, 1).variables);
  cycle.load([&](const std::string& name) {
    const auto found = weights.find(name);
    return found != weights.end() ? found->second : starting_value(cycle.first(), name);
  });
  if (subject.arguments().train) return {"losses", losses_of_steps(options, model, cycle)};
  Feeds inputs = batch_by_formula(model, cycle.first().batch, 0);
  inputs.erase("labels");
  const Tensor logits = cycle.at(0).run(inputs).at("logits");
  std::vector<double> values;
  for (int64_t i = 0; i < std::min<int64_t>(kShown, model.options.classes); ++i)
    values.push_back(logits.at(i));
  return {"outputs", std::move(values)};
}

}  // namespace

CheckedValues check_by_formula(const ModelArguments& arguments, const CheckOptions& options) {
  require(!is_recipe_file(arguments.model), ErrorCode::invalid_argument,
          "--check is of a network, and '{}' is a recipe: of it no weights by a formula are known",
          arguments.model);
  const std::unique_ptr<Subject> subject = open_subject(arguments);
  return is_network_file(arguments.model) ? check_file(*subject, options) : check_network(*subject, options);
}

}  // namespace tessera::cli
