#include "cli/step_cycle.h"

#include <memory>

#include "tessera/compile/variables.h"

namespace tessera::cli {

StepCycle::StepCycle(const Subject& subject) : subject_(subject) {
  compiled_.emplace(train::StepKind::updating, subject.compile());
  if (!subject.arguments().train) return;
  accumulated_ = subject.accumulated_batches();
  if (subject.arguments().ranks.count > 1) averaged_ = subject.local_steps();
  for (int64_t step = 0; step < steps(); ++step) {
    const train::StepKind kind = kind_of(step);
    if (!compiled_.contains(kind))
      compiled_.emplace(kind, subject.compile(kind, first().executable->workspace()));
  }
}

train::StepKind StepCycle::kind_of(int64_t step) const {
  if ((step + 1) % accumulated_ != 0) return train::StepKind::accumulating;
  const bool ends = (step + 1) % steps() == 0;
  return averaged_ > 1 && ends ? train::StepKind::averaging : train::StepKind::updating;
}

double StepCycle::compile_seconds() const {
  double seconds = 0;
  for (const auto& [kind, compiled] : compiled_) seconds += compiled.executable->compile_seconds();
  return seconds;
}

Executable& StepCycle::at(int64_t step) const {
  return *compiled_.at(kind_of(step)).executable;
}

void StepCycle::load(const std::function<Tensor(const std::string& name)>& value) const {
  if (compiled_.size() == 1) return first().executable->load(value);
  const auto variables = std::make_shared<Variables>(first().device);
  for (const auto& [kind, compiled] : compiled_) {
    for (const nn::Variable& variable : compiled.step.variables) {
      if (!variables->contains(variable.name)) variables->set(variable.name, value(variable.name));
    }
  }
  for (const auto& [kind, compiled] : compiled_) compiled.executable->bind(variables);
}

void StepCycle::make_ready() const {
  load([this](const std::string& name) { return starting_value(first(), name); });
  for (const auto& [kind, compiled] : compiled_) compiled.executable->stage(subject_.inputs(compiled));
}

void StepCycle::discard() const {
  for (const auto& [kind, compiled] : compiled_) compiled.executable->discard();
}

}  // namespace tessera::cli
