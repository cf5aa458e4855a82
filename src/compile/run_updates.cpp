#include "compile/run_updates.h"

namespace tessera {

void RunUpdates::allocate() {
  staging_.clear();
  for (size_t update : plan_.copied_updates) {
    // Sources that are variables may be overwritten by another update's copy: they go through a buffer.
    const Value* next = graph_.updates()[update].next;
    const bool from_variable = plan_.placements.at(next).kind == StorageKind::variable;
    staging_.push_back(from_variable ? device_.allocate(next->type().bytes()) : nullptr);
  }
  for (const auto& [name, value] : graph_.outputs()) {
    if (plan_.placements.at(value).kind == StorageKind::variable && !plan_.copied_updates.empty())
      kept_outputs_[value] = device_.allocate(value->type().bytes());
  }
}

void RunUpdates::apply(const MemoryOf& memory, const RunVariables& variables) {
  for (const auto& [value, kept] : kept_outputs_)
    queue_.copy(kept.get(), memory(value), value->type().bytes());
  for (const bool staged : {true, false}) {
    for (size_t i = 0; i < plan_.copied_updates.size(); ++i) {
      const auto& [state, next] = graph_.updates()[plan_.copied_updates[i]];
      const int64_t bytes = next->type().bytes();
      if (staged && staging_[i] != nullptr) queue_.copy(staging_[i].get(), memory(next), bytes);
      if (!staged) {
        queue_.copy(variables.pointer(state->name()),
                    staging_[i] != nullptr ? staging_[i].get() : memory(next), bytes);
      }
    }
  }
}

const std::vector<const void*>& RunUpdates::outputs(const MemoryOf& memory) {
  outputs_.clear();  // keeps its capacity: this is host work of every step
  for (size_t index = 0; index < graph_.outputs().size(); ++index) outputs_.push_back(output(memory, index));
  return outputs_;
}

const void* RunUpdates::output(const MemoryOf& memory, size_t index) const {
  const Value* value = graph_.outputs()[index].value;
  const auto kept = kept_outputs_.find(value);
  return kept != kept_outputs_.end() ? kept->second.get() : memory(value);
}

}  // namespace tessera
