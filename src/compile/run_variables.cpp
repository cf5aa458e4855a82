#include "compile/run_variables.h"

#include "tessera/base/error.h"

namespace tessera {
namespace {

void check_type(const Value& input, DataType type, const Shape& shape) {
  require(type == input.data_type() && shape == input.type().static_shape(), ErrorCode::invalid_argument,
          "variable '{}' is {}{}, the graph wants {}", input.name(), to_string(type), to_string(shape),
          to_string(input.type()));
}

// Calls `use` with the name of each variable whose memory the node reads.
template <typename Use>
void for_each_variable(const Node& node, const StoragePlan& plan, Use&& use) {
  for (const Value* input : node.inputs()) {
    const Placement& placement = plan.placements.at(input);
    if (placement.kind == StorageKind::variable) use(placement.variable);
  }
}

}  // namespace

RunVariables::RunVariables(const Graph& graph, const Schedule& schedule, const StoragePlan& plan,
                           std::shared_ptr<Device> device, std::shared_ptr<Queue> queue)
    : graph_(graph), plan_(plan), device_(std::move(device)), queue_(std::move(queue)) {
  for (const Node* node : schedule.once) {
    for_each_variable(*node, plan_, [&](const std::string& name) {
      if (plan_.settled_variables.contains(name)) last_readers_[name] = node;
    });
  }
}

void RunVariables::share(std::shared_ptr<Variables> variables) {
  std::vector<const Value*> missing;
  for (const auto& input : graph_.inputs()) {
    if (input->role() == InputRole::input) continue;
    if (input->initial() != nullptr && !variables->contains(input->name())) {
      missing.push_back(input.get());
    } else {
      check_type(*input, variables->data_type(input->name()), variables->shape(input->name()));
    }
  }
  for (const Value* state : missing) variables->set(state->name(), *state->initial());
  variables_ = std::move(variables);
  variables_->add_user(queue_, updates());
  value_ = nullptr;
}

void RunVariables::own(VariableSource value) {
  variables_ = std::make_shared<Variables>(device_);
  variables_->add_user(queue_, updates());
  value_ = std::move(value);
}

void RunVariables::unbind() {
  variables_ = nullptr;
  value_ = nullptr;
}

void RunVariables::before_once(const Node& node) {
  if (value_ == nullptr) return;
  for_each_variable(node, plan_, [&](const std::string& name) { fetch(name); });
}

void RunVariables::after_once(const Node& node) {
  if (value_ == nullptr) return;
  for_each_variable(node, plan_, [&](const std::string& name) {
    const auto last = last_readers_.find(name);
    if (last != last_readers_.end() && last->second == &node) variables_->erase(name);
  });
}

void RunVariables::before_runs() {
  if (value_ == nullptr) return;
  for (const auto& input : graph_.inputs()) {
    if (input->role() != InputRole::input && !plan_.settled_variables.contains(input->name()))
      fetch(input->name());
  }
  value_ = nullptr;
}

void RunVariables::fetch(const std::string& name) {
  if (variables_->contains(name)) return;
  const Value& input = *graph_.find_input(name);
  std::optional<Tensor> value = value_(name);
  if (!value.has_value() && input.initial() != nullptr) value = *input.initial();
  require(value.has_value(), ErrorCode::invalid_argument, "there is no variable '{}'", name);
  check_type(input, value->data_type(), value->shape());
  variables_->set(name, *value);
}

}  // namespace tessera
