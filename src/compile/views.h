// Which values of a scheduled graph lie in the memory of others: under another shape, as a part of it, or
// made in their places of a concatenation.
#pragma once

#include <cstdint>
#include <string>
#include <unordered_map>
#include <unordered_set>

#include "tessera/base/tensor.h"

#include "compile/schedule.h"

namespace tessera {

// In the memory of `whole` from that byte on.
struct PlaceInMemory {
  const Value* whole = nullptr;
  int64_t offset = 0;
};

class Views {
 public:
  // The value itself where it lies in no other's memory.
  PlaceInMemory place(const Value* value) const;
  const Value* whole(const Value* value) const { return place(value).whole; }
  // True for nodes without work: their results are there when their operands are.
  bool is_alias(const Node& node) const { return aliases_.contains(&node); }
  // Of such a node, for people: NodeReport::memory.
  std::string describe(const Node& node) const;

 private:
  friend class ViewFinder;
  std::unordered_map<const Value*, PlaceInMemory> places_;  // of those that lie in another's
  std::unordered_set<const Node*> aliases_;
};

struct StorageOptions {
  bool reuse = true;  // false: every value in memory of its own, but for what is the same whatever the shapes
  int64_t alignment = kMemoryAlignment;  // Device::memory_alignment()
  int64_t worth_a_copy = 0;              // bytes of memory that views may cost, so that nothing is copied
};

// A part keeps all of what it is a part of, and a concatenation is in memory from its first operand on: what
// would need more memory so than with copies, at the step that needs the most, is copied; but for
// worth_a_copy.
Views find_views(const Graph& graph, const Schedule& schedule, const StorageOptions& options);

}  // namespace tessera
