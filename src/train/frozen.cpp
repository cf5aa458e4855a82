// What of a network is read that is not trained.
#include <set>
#include <utility>

#include "tessera/base/error.h"
#include "tessera/train/checkpoint.h"
#include "tessera/train/step.h"

#include "train/read_states.h"

namespace tessera::train {
namespace {

using InputMaker = std::function<nn::Values(Graph& graph)>;

StepGraph build_reading(const nn::Task& task, Reading reading, const nn::Ranks& ranks, DataType kept,
                        const InputMaker& add_inputs) {
  const bool evaluates = reading == Reading::evaluation;
  const auto& build = evaluates && task.evaluation ? task.evaluation : task.inference;
  require(static_cast<bool>(build), ErrorCode::invalid_argument, "{} has nothing to {}", task.name,
          evaluates ? "evaluate" : "serve");
  auto graph = std::make_unique<Graph>(task.network + (evaluates ? "_evaluation" : "_inference"));
  nn::Context context(*graph, nn::Mode::inference, {}, ranks);
  context.keep_in(kept);
  const nn::Values inputs = add_inputs(*graph);
  for (const auto& [name, value] : build(context, inputs)) graph->add_output(name, value);
  for (const auto& [name, value] : inputs) {
    if (!graph->is_used(value)) graph->erase_input(value);
  }
  return {std::move(graph), context.variables()};
}

}  // namespace

StepGraph build_frozen(const nn::Task& task, Reading reading, const SymbolBindings& sizes,
                       const std::function<bool(const nn::Variable&)>& averaged, const nn::Ranks& ranks,
                       DataType kept) {
  StepGraph frozen = build_reading(task, reading, ranks, kept,
                                   [&](Graph& graph) { return nn::add_inputs(graph, task, sizes); });
  for (nn::Variable& variable : frozen.variables) {
    if (!averaged || !averaged(variable)) continue;
    Value* input = frozen.graph->find_input(variable.name);
    variable.name = "ema/" + variable.name;
    frozen.graph->rename(input, variable.name);
  }
  return frozen;
}

SymbolBindings all_sizes(const nn::Task& task, SymbolBindings sizes) {
  for (const Field& field : task.inputs) {
    std::set<std::string> symbols;
    for (const Dimension& extent : field.type.shape) extent.collect_symbols(symbols);
    for (const std::string& symbol : symbols) sizes.emplace(symbol, 1);
  }
  return sizes;
}

bool begin_states(Variables& variables, const std::vector<nn::Variable>& list) {
  bool begins = false;
  for (const nn::Variable& variable : list) {
    if (variable.role != InputRole::state) continue;
    if (variables.contains(variable.name)) {
      if (variables.shape(variable.name) == variable.shape &&
          variables.data_type(variable.name) == variable.data_type)
        continue;
      variables.erase(variable.name);
    }
    variables.set(variable.name, starting_value(variable, 0));
    begins = true;
  }
  return begins;
}

ExecutableFamily serve(const nn::Task& task, const std::shared_ptr<Variables>& variables,
                       CompileOptions options, const std::function<bool(const nn::Variable&)>& averaged) {
  const DataType kept = lowered_type(options.passes.precision).value_or(DataType::fp32);
  const auto frozen = [task, averaged, kept](const SymbolBindings& sizes) {
    return build_frozen(task, Reading::inference, sizes, averaged, {}, kept);
  };
  begin_states(*variables, frozen(all_sizes(task)).variables);
  options.passes.frozen = true;
  const auto build = [frozen](const SymbolBindings& sizes) { return frozen(sizes).graph; };
  ExecutableFamily family(variables->shared_device(), build, std::move(options));
  family.bind(variables);
  return family;
}

StepGraph build_served(const nn::Task& task) {
  return build_reading(task, Reading::inference, {}, DataType::fp32,
                       [&](Graph& graph) { return nn::add_inputs(graph, task); });
}

}  // namespace tessera::train
