#include "compile/packed_inputs.h"

#include <algorithm>

#include "compile/kernel_failure.h"

namespace tessera {

PackedInputs::PackedInputs(const std::vector<Step>& steps, const DerivedValues& derived, Device& device,
                           MemoryPlan& plan)
    : device_(device), entries_of_(steps.size()) {
  for (size_t step = 0; step < steps.size(); ++step) {
    if (steps[step].kernel == nullptr) continue;
    const std::vector<Packing> packings = steps[step].kernel->packings();
    for (size_t i = 0; i < packings.size(); ++i) {
      const Packing& packing = packings[i];
      const Value& value = *steps[step].node->input(packing.input);
      std::string key = derived.key_of(&value);
      if (!key.empty())
        key = packing.layout.empty() ? "" : fmt::format("packed: {} [{}]", packing.layout, key);
      const size_t known = entries_.size();
      const size_t entry = entry_for({.key = std::move(key),
                                      .step = step,
                                      .packing = i,
                                      .input = packing.input,
                                      .bytes = packing.bytes});
      entries_of_[step].push_back(entry);
      if (entry < known) continue;
      plan.persistent_bytes += packing.bytes;
      plan.packed_bytes += packing.bytes;
      plan.derived.push_back({.name = value.name(),
                              .type = to_string(value.type()),
                              .bytes = packing.bytes,
                              .packed_for = steps[step].kernel_name});
    }
  }
}

size_t PackedInputs::entry_for(const Entry& wanted) {
  if (!wanted.key.empty()) {
    const auto [known, added] = by_key_.emplace(wanted.key, entries_.size());
    if (!added) return known->second;
  }
  entries_.push_back(wanted);
  return entries_.size() - 1;
}

void PackedInputs::give(std::vector<Step>& steps, RunVariables& variables) {
  for (Entry& entry : entries_) make(entry, steps[entry.step], variables);
  for (size_t step = 0; step < steps.size(); ++step) {
    steps[step].packed.clear();
    for (const size_t entry : entries_of_[step]) steps[step].packed.push_back(entries_[entry].memory.get());
  }
}

void PackedInputs::make(Entry& entry, const Step& step, RunVariables& variables) {
  if (!entry.key.empty()) {
    if (std::shared_ptr<void> known = variables.derived(entry.key); known != nullptr) {
      entry.memory = std::move(known);
      return;
    }
  }
  // What others keep too is not written to again.
  if (entry.memory.use_count() != 1) entry.memory = device_.allocate(std::max<int64_t>(entry.bytes, 1));
  naming_kernel(step.kernel_name, *step.node,
                [&] { step.kernel->pack(entry.packing, step.inputs[entry.input], entry.memory.get()); });
  if (!entry.key.empty()) variables.keep_derived(entry.key, entry.memory);
}

}  // namespace tessera
