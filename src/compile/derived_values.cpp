#include "compile/derived_values.h"

#include <fmt/format.h>

#include "compile/tuner.h"

namespace tessera {

DerivedValues::DerivedValues(const Schedule& schedule, const StoragePlan& plan, Device& device,
                             const std::function<KernelRequest(const Node& node)>& request_for)
    : plan_(plan), device_(device), memory_(plan.persistent.size()) {
  constexpr size_t kLongest = size_t{1} << 14;
  for (const Node* node : schedule.once) {
    std::string text = Tuner::key_of(request_for(*node));
    bool is_described = true;
    for (const Value* input : node->inputs()) {
      const std::string key = key_of(input);
      is_described = is_described && !key.empty();
      text += fmt::format(" [{}]", key);
    }
    if (!is_described || text.size() > kLongest) continue;
    for (const auto& output : node->outputs())
      keys_[output.get()] = fmt::format("{} -> {}", text, output->index());
  }
}

std::string DerivedValues::key_of(const Value* value) const {
  if (value->producer() == nullptr) return fmt::format("%{} {}", value->name(), to_string(value->type()));
  const auto known = keys_.find(value);
  return known == keys_.end() ? "" : known->second;
}

bool DerivedValues::take(const Node& node, const RunVariables& variables) {
  std::vector<std::shared_ptr<void>> known;
  for (const auto& output : node.outputs()) {
    const auto key = keys_.find(output.get());
    if (key == keys_.end()) return false;
    known.push_back(variables.derived(key->second));
    if (known.back() == nullptr) return false;
  }
  for (const auto& output : node.outputs()) memory_of(output.get()) = known[output->index()];
  return true;
}

// What others keep too is not written to again.
void DerivedValues::allocate(const Node& node) {
  for (const auto& output : node.outputs()) {
    std::shared_ptr<void>& memory = memory_of(output.get());
    if (memory.use_count() != 1) memory = device_.allocate(output->type().bytes());
  }
}

void DerivedValues::keep(RunVariables& variables) const {
  for (size_t index = 0; index < memory_.size(); ++index) {
    const auto key = keys_.find(plan_.persistent[index]);
    if (key != keys_.end()) variables.keep_derived(key->second, memory_[index]);
  }
}

}  // namespace tessera
