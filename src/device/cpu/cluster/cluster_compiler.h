// Turns the body of a cluster into a Program. Used by compile_cluster only.
#pragma once

#include <unordered_map>
#include <vector>

#include "device/cpu/cluster/cluster_program.h"

namespace tessera::cpu {

class ClusterCompiler {
 public:
  // `capacity`: elements of a tile.
  ClusterCompiler(const Graph& body, int64_t capacity);

  // Refuses what no program does.
  Program compile();

 private:
  // How often a value changes. `row` occurs where tiles are parts of rows, `tile_invariant` where they are
  // whole rows.
  enum class Rate : uint8_t { uniform, row, tile_invariant, tile };
  struct Item {
    int slot = -1;
    Lane lane = Lane::f32;
    Rate rate = Rate::tile;
  };

  void check_types() const;
  void find_shape();
  void make_inputs();
  void add_constant(const Node& node);
  void add_input_item(size_t index);
  void add_node(const Node& node);
  Item add_primitive(const std::string& name, Lane lane, Lane result, const std::vector<Item>& operands);
  Item add_cast(const Node& node);
  Item add_random(const Node& node);
  Item add_loop(Loop loop, Lane result, Rate rate, const std::vector<Item>& operands);
  Item round(Item item, DataType type, bool saturate);
  void add_outputs();
  Item as_register(Item item);

  Item item_of(const Value* value) const;
  int add_slot(Slot slot);
  int new_result(Rate rate);
  std::vector<Instruction>& code_of(Rate rate);
  void assign_buffers();
  void note_accesses();

  const Graph& body_;
  int64_t capacity_;
  Program program_;
  Shape shape_;                      // of the iteration
  const Node* reduction_ = nullptr;  // the ending one
  std::unordered_map<const Value*, Item> items_;
  std::unordered_map<const Value*, int> direct_outputs_;  // values computed right into an output
  int virtual_buffers_ = 0;
};

}  // namespace tessera::cpu
