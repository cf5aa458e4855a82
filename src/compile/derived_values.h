// What is computed once, of constants and frozen variables: kept together by executables over the same ones.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <unordered_map>
#include <unordered_set>
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

  // Of plan.persistent; null before it is made, and of plan.passing after its last reader.
  void* memory(size_t index) const { return memory_[index].get(); }

  // Takes what another executable has; which of the nodes, all of schedule.once, are to be computed then.
  std::unordered_set<const Node*> take(const std::vector<const Node*>& nodes, const RunVariables& variables);
  // Equal for values of equal bits: the variables, by name, and what is done with them. "" for what only a
  // very long text would describe.
  std::string key_of(const Value* value) const;

  // Memory for the node to compute them into.
  void allocate(const Node& node);
  // The node has ended: of what runs do not read its operands may have been read for the last time.
  void release_after(const Node& node);
  // All are computed: others may take those that are left.
  void keep(RunVariables& variables) const;

 private:
  bool take(const Node& node, const RunVariables& variables);
  // Whether runs read one of its results.
  bool is_kept(const Node& node) const;
  std::shared_ptr<void>& memory_of(const Value* value) { return memory_[plan_.placements.at(value).index]; }

  const StoragePlan& plan_;
  Device& device_;
  std::vector<std::shared_ptr<void>> memory_;                // by place in plan.persistent
  std::unordered_map<const Value*, std::string> keys_;       // of what nodes make
  std::unordered_multimap<const Node*, size_t> last_reads_;  // of plan.passing
};

}  // namespace tessera
