#include "cli/step_cycle.h"

#include <memory>

#include "tessera/compile/variables.h"

namespace tessera::cli {

StepCycle::StepCycle(const ModelArguments& arguments) {
  compiled_.push_back(compile_model(arguments));
  if (arguments.local_steps == 1 || arguments.ranks.count == 1) return;
  steps_ = arguments.local_steps;
  ModelArguments averaging = arguments;
  averaging.kind = train::StepKind::averaging;
  compiled_.push_back(compile_model(averaging, first().executable->workspace()));
}

double StepCycle::compile_seconds() const {
  double seconds = 0;
  for (const CompiledModel& compiled : compiled_) seconds += compiled.executable->compile_seconds();
  return seconds;
}

Executable& StepCycle::at(int64_t step) const {
  return (step + 1) % steps_ == 0 ? *compiled_.back().executable : *first().executable;
}

void StepCycle::load(const std::function<Tensor(const std::string& name)>& value) const {
  if (steps_ == 1) return first().executable->load(value);
  const auto variables = std::make_shared<Variables>(first().device);
  for (const CompiledModel& compiled : compiled_) {
    for (const nn::Variable& variable : compiled.step.variables) {
      if (!variables->contains(variable.name)) variables->set(variable.name, value(variable.name));
    }
  }
  for (const CompiledModel& compiled : compiled_) compiled.executable->bind(variables);
}

void StepCycle::make_ready(const ModelArguments& arguments) const {
  if (steps_ == 1) {
    load_variables(arguments, first());
  } else {
    load([&](const std::string& name) { return starting_value(first(), name); });
  }
  for (const CompiledModel& compiled : compiled_) stage_inputs(arguments, compiled);
}

void StepCycle::discard() const {
  for (const CompiledModel& compiled : compiled_) compiled.executable->discard();
}

}  // namespace tessera::cli
