// What a run does after its nodes: outputs that are the values of variables are put aside, then updates that
// no node writes in place are copied.
#pragma once

#include <functional>
#include <memory>
#include <unordered_map>
#include <vector>

#include "tessera/compile/device.h"

#include "compile/run_variables.h"
#include "compile/storage.h"

namespace tessera {

class RunUpdates {
 public:
  // Where a run finds or leaves a value.
  using MemoryOf = std::function<const void*(const Value*)>;

  // All must outlive this.
  RunUpdates(const Graph& graph, const StoragePlan& plan, Device& device, Queue& queue)
      : graph_(graph), plan_(plan), device_(device), queue_(queue) {}

  // The memory that this takes, before the first run.
  void allocate();
  // Enqueues that work.
  void apply(const MemoryOf& memory, const RunVariables& variables);
  // Where the graph's outputs lie after it, in their order; valid until the next call.
  const std::vector<const void*>& outputs(const MemoryOf& memory);
  // One of them, by its place.
  const void* output(const MemoryOf& memory, size_t index) const;

 private:
  const Graph& graph_;
  const StoragePlan& plan_;
  Device& device_;
  Queue& queue_;
  std::vector<std::shared_ptr<void>> staging_;  // beside plan.copied_updates; null where the copy is direct
  std::unordered_map<const Value*, std::shared_ptr<void>> kept_outputs_;
  std::vector<const void*> outputs_;
};

}  // namespace tessera
