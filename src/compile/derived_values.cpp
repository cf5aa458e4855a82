#include "compile/derived_values.h"

#include <algorithm>

#include <fmt/format.h>

#include "compile/tuner.h"

namespace tessera {
namespace {

constexpr size_t kLongest = size_t{1} << 14;  // text of a node

// Whether its text is longer for a constant alone, which would be printed number by number to find that out.
bool is_long(const Node& node) {
  constexpr size_t kLeast = 3;  // characters of a number and of what is between two
  return std::ranges::any_of(node.attributes().entries(), [](const auto& entry) {
    const auto* constant = std::get_if<Tensor>(&entry.second.variant());
    return constant != nullptr && static_cast<size_t>(constant->size()) > kLongest / kLeast;
  });
}

}  // namespace

DerivedValues::DerivedValues(const Schedule& schedule, const StoragePlan& plan, Device& device,
                             const std::function<KernelRequest(const Node& node)>& request_for)
    : plan_(plan), device_(device), memory_(plan.persistent.size()) {
  for (const Node* node : schedule.once) {
    if (is_long(*node)) continue;
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
  std::unordered_map<size_t, const Node*> last;
  const auto note = [&](const Value* value, const Node* node) {
    const Placement& placement = plan.placements.at(value);
    if (placement.kind == StorageKind::persistent && plan.passing.contains(placement.index))
      last[placement.index] = node;
  };
  for (const Node* node : schedule.once) {
    for (const Value* input : node->inputs()) note(input, node);
    for (const auto& output : node->outputs()) note(output.get(), node);
  }
  for (const auto& [index, node] : last) last_reads_.emplace(node, index);
}

std::string DerivedValues::key_of(const Value* value) const {
  if (value->producer() == nullptr) return fmt::format("%{} {}", value->name(), to_string(value->type()));
  const auto known = keys_.find(value);
  return known == keys_.end() ? "" : known->second;
}

// From the last to the first, so that nothing is computed for what is there.
std::unordered_set<const Node*> DerivedValues::take(const std::vector<const Node*>& nodes,
                                                    const RunVariables& variables) {
  std::unordered_set<const Node*> missing;
  const auto is_wanted = [&](const auto& output) {
    return std::any_of(output->uses().begin(), output->uses().end(),
                       [&](const Use& use) { return missing.contains(use.node); });
  };
  for (auto node = nodes.rbegin(); node != nodes.rend(); ++node) {
    const auto& outputs = (*node)->outputs();
    const bool is_there =
        is_kept(**node) ? take(**node, variables) : std::none_of(outputs.begin(), outputs.end(), is_wanted);
    if (!is_there) missing.insert(*node);
  }
  return missing;
}

bool DerivedValues::is_kept(const Node& node) const {
  return std::any_of(node.outputs().begin(), node.outputs().end(), [&](const auto& output) {
    const size_t index = plan_.placements.at(output.get()).index;
    const bool is_own = plan_.placements.at(output.get()).kind == StorageKind::persistent &&
                        plan_.persistent[index] == output.get();
    return is_own && !plan_.passing.contains(index);
  });
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

void DerivedValues::release_after(const Node& node) {
  const auto [begin, end] = last_reads_.equal_range(&node);
  for (auto read = begin; read != end; ++read) memory_[read->second].reset();
}

void DerivedValues::keep(RunVariables& variables) const {
  for (size_t index = 0; index < memory_.size(); ++index) {
    const auto key = keys_.find(plan_.persistent[index]);
    if (key != keys_.end() && memory_[index] != nullptr) variables.keep_derived(key->second, memory_[index]);
  }
}

}  // namespace tessera
