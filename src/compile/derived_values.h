// What is computed once, of constants and frozen variables: kept together by executables over the same ones.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <unordered_map>
#include <vector>

#include "tessera/compile/kernel.h"

#include "compile/run_variables.h"
#include "compile/schedule.h"
#include "compile/storage.h"

namespace tessera {

class DerivedValues {
 public:
  // All must outlive this, but for the function.
  DerivedValues(const Schedule& schedule, const StoragePlan& plan, Device& device,
                const std::function<KernelRequest(const Node& node)>& request_for);

  // Of plan.persistent; null before it is made.
  void* memory(size_t index) const { return memory_[index].get(); }

  // Before the nodes of schedule.once, in their order: finds out how much memory they need.
  void begin(const RunVariables& variables);
  // Whether another executable has the node's results, which serve this one then.
  bool take(const Node& node, const RunVariables& variables);
  // Equal for values of equal bits: the variables, by name, and what is done with them. "" for what only a
  // very long text would describe.
  std::string key_of(const Value* value) const;

  // Memory for the node to compute them into.
  void allocate(const Node& node);
  // All are computed: others may take them.
  void keep(RunVariables& variables);

 private:
  std::shared_ptr<void>& memory_of(const Value* value) { return memory_[plan_.placements.at(value).index]; }
  // What others have of the node's results; empty where one is missing.
  std::vector<std::shared_ptr<void>> known_results(const Node& node, const RunVariables& variables) const;
  int64_t place_bytes(const Value& value) const;
  std::shared_ptr<void> next_place(int64_t bytes);

  const Schedule& schedule_;
  const StoragePlan& plan_;
  Device& device_;
  std::vector<std::shared_ptr<void>> memory_;           // by place in plan.persistent
  std::unordered_map<const Value*, std::string> keys_;  // of what nodes make

  // Values made one after another lie one after another, not in the gaps that the variables leave of which
  // they are made: what a run reads is then in few pages of the device's memory.
  std::shared_ptr<void> block_;
  int64_t block_bytes_ = 0;
  int64_t used_bytes_ = 0;   // of the block
  int64_t still_bytes_ = 0;  // that the nodes to come need, with those of this block
};

}  // namespace tessera
