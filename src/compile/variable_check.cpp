#include "tessera/compile/variable_check.h"

#include "tessera/graph/operator.h"
#include "tessera/ops/functions.h"

namespace tessera {
namespace {

// 1 where all elements are finite, else 0. Variables of as many elements need one kernel, whatever their
// shape.
Value* finite_or_zero(Value* variable) {
  Value* elements = ops::reshape(variable, {variable->type().element_count()});
  const bool is_computed = kFloatingTypes.contains(elements->data_type());
  Value* numbers = is_computed ? elements : ops::cast(elements, DataType::fp32);
  return ops::reduce_min(ops::cast(ops::is_finite(numbers), DataType::fp32));
}

}  // namespace

VariableCheck::VariableCheck(std::shared_ptr<Variables> variables, const std::vector<std::string>& names,
                             std::shared_ptr<Workspace> workspace) {
  Graph graph("variable_check");
  for (const std::string& name : names) {
    const DataType type = variables->data_type(name);
    if (!is_floating(type)) continue;
    names_.push_back(name);
    // As a state: what is known of it differs from run to run.
    Value* variable = graph.add_input(InputRole::state, name, {type, to_symbolic(variables->shape(name))});
    graph.add_output(name, finite_or_zero(variable));
  }
  if (names_.empty()) return;
  CompileOptions options;
  options.workspace = std::move(workspace);
  executable_ = compile(graph, options.workspace->device(), options);
  executable_->bind(std::move(variables));
  for (const std::string& name : names_) executable_->fetch(name, Executable::Fetch::device);
}

std::optional<std::string> VariableCheck::first_not_finite() {
  if (executable_ == nullptr) return std::nullopt;
  executable_->run({});
  for (const std::string& name : names_) {
    if (executable_->output(name).to_host().at(0) == 0) return name;
  }
  return std::nullopt;
}

}  // namespace tessera
