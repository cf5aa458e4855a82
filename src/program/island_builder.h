// How build_island() works.
#pragma once

#include "program/island.h"

namespace tessera::program {

// What rules throw through the builder, never out of the room.
struct EndOfIsland {
  std::string why;
};
struct NotLowered {  // the instruction is for the host
  std::string why;
};

// A value while an island is built: settled contents, a value of the frame, or one of the graph.
struct Slot {
  bool settled = false;
  Item item = {};            // when it is settled
  TensorType type = {};      // else
  Value* value = nullptr;    // null until a node reads it
  std::string source = {};   // the name in the frame; "" for what the island makes
  bool is_constant = false;  // of the module
};

class IslandBuilder {
 public:
  IslandBuilder(const Frame& frame, size_t begin, WeightNames& names, WeightRole role, GraphOwner* owner);
  Island build();

  Slot& slot(const std::string& name);
  Slot* find_slot(const std::string& name);  // of what was read or made so far, else null
  // The slot's value in the island's graph; `is_statistic` as GraphOwner::variable() has it.
  Value* value_of(const std::string& name, Slot& slot, bool is_statistic = false);
  void assume(Slot& slot);
  // Its outputs.
  std::vector<Slot> inline_body(const Block& body, const std::vector<Value*>& inputs);
  Graph& graph() { return owner_ != nullptr ? owner_->graph() : *island_.graph; }
  GraphOwner* owner() { return owner_; }
  void require_contents(const Slot& slot, const Instruction& instruction, size_t operand) const;

 private:
  struct Scope {
    const Block* block;
    std::map<std::string, Slot> slots = {};
  };
  Slot read_frame(const std::string& name);
  bool becomes_variable(const Slot& slot) const;
  bool settled(const Instruction& instruction);
  void lower(const Instruction& instruction);
  bool fold(const Instruction& instruction, const Rule& rule);
  void keep(const Instruction& instruction, std::vector<Slot> results);
  void lower_in_graph(const Instruction& instruction, const Rule& rule);
  void export_results();
  void erase_nodes_after(const Node* last);

  const Frame& frame_;
  size_t begin_;
  WeightNames& names_;
  WeightRole role_;
  GraphOwner* owner_;
  Island island_;
  std::vector<Scope> scopes_;
};

}  // namespace tessera::program
