#include "compile/derived_values.h"

#include <algorithm>

#include <fmt/format.h>

#include "tessera/base/rounding.h"

#include "compile/tuner.h"

namespace tessera {
namespace {

// No more than this is allocated while the variables of which it is made are still there.
constexpr int64_t kMostBlockBytes = int64_t{64} << 20;

}  // namespace

DerivedValues::DerivedValues(const Schedule& schedule, const StoragePlan& plan, Device& device,
                             const std::function<KernelRequest(const Node& node)>& request_for)
    : schedule_(schedule), plan_(plan), device_(device), memory_(plan.persistent.size()) {
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

std::vector<std::shared_ptr<void>> DerivedValues::known_results(const Node& node,
                                                                const RunVariables& variables) const {
  std::vector<std::shared_ptr<void>> known;
  for (const auto& output : node.outputs()) {
    const auto key = keys_.find(output.get());
    if (key == keys_.end()) return {};
    known.push_back(variables.derived(key->second));
    if (known.back() == nullptr) return {};
  }
  return known;
}

int64_t DerivedValues::place_bytes(const Value& value) const {
  return round_up(value.type().bytes(), device_.memory_alignment());
}

void DerivedValues::begin(const RunVariables& variables) {
  block_ = nullptr;
  still_bytes_ = 0;
  std::vector<bool> seen(memory_.size(), false);  // a view lies in what was seen before
  for (const Node* node : schedule_.once) {
    const bool is_known = !known_results(*node, variables).empty();
    for (const auto& output : node->outputs()) {
      const Placement& placement = plan_.placements.at(output.get());
      if (placement.kind != StorageKind::persistent || seen[placement.index]) continue;
      seen[placement.index] = true;
      if (!is_known && memory_[placement.index].use_count() != 1)
        still_bytes_ += place_bytes(*plan_.persistent[placement.index]);
    }
  }
}

bool DerivedValues::take(const Node& node, const RunVariables& variables) {
  const std::vector<std::shared_ptr<void>> known = known_results(node, variables);
  for (size_t i = 0; i < known.size(); ++i) memory_of(node.output(i)) = known[i];
  return !known.empty();
}

std::shared_ptr<void> DerivedValues::next_place(int64_t bytes) {
  if (block_ == nullptr || used_bytes_ + bytes > block_bytes_) {
    block_bytes_ = std::max(bytes, std::min(kMostBlockBytes, still_bytes_));
    block_ = device_.allocate(block_bytes_);
    used_bytes_ = 0;
  }
  void* place = static_cast<char*>(block_.get()) + used_bytes_;
  used_bytes_ += bytes;
  still_bytes_ -= bytes;
  // It counts by itself who keeps this value.
  return {place, [block = block_](void*) mutable { block.reset(); }};
}

// What others keep too is not written to again.
void DerivedValues::allocate(const Node& node) {
  for (const auto& output : node.outputs()) {
    std::shared_ptr<void>& memory = memory_of(output.get());
    if (memory.use_count() != 1) memory = next_place(place_bytes(*output));
  }
}

void DerivedValues::keep(RunVariables& variables) {
  block_ = nullptr;
  for (size_t index = 0; index < memory_.size(); ++index) {
    const auto key = keys_.find(plan_.persistent[index]);
    if (key != keys_.end()) variables.keep_derived(key->second, memory_[index]);
  }
}

}  // namespace tessera
