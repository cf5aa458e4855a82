// The calls that a builder makes of rules.
#pragma once

#include "program/island_builder.h"

namespace tessera::program {

// In the island's graph.
class IslandCall : public LowerCall {
 public:
  IslandCall(IslandBuilder& builder, const Instruction& instruction);

  Graph& graph() override { return builder_.graph(); }
  bool has(size_t operand) const override;
  Value* operand(size_t i) override { return value_of(i, false); }
  Value* statistic(size_t i) override { return value_of(i, true); }
  GraphOwner* trainer() override;
  TensorType type(size_t i) override;
  Tensor known(size_t i) override;
  const Tensor* settled(size_t i) override;
  Value* made_here(const std::string& name) override;
  void result(size_t i, Value* value) override;
  void result(size_t i, Tensor value) override;
  void inline_body(const Block& body) override;
  std::vector<Value*> inline_body(const Block& body, const std::vector<Value*>& inputs) override;
  [[noreturn]] void leave_to_host(const std::string& why) override { throw NotLowered{why}; }
  std::vector<Slot>& results() { return results_; }

 protected:
  virtual Value* value_of(size_t i, bool is_statistic);
  const std::string& name(size_t i) const;
  Slot& slot(size_t i) const { return builder_.slot(name(i)); }

  IslandBuilder& builder_;
  std::vector<Slot> results_;
};

// In a graph of its own, of settled operands, to be run at once.
class FoldingCall : public IslandCall {
 public:
  FoldingCall(IslandBuilder& builder, const Instruction& instruction) : IslandCall(builder, instruction) {}

  Graph& graph() override { return graph_; }
  GraphOwner* trainer() override { return nullptr; }
  // The results, all settled; false when one is too large to be kept so.
  bool evaluate();

 private:
  Value* value_of(size_t i, bool is_statistic) override;

  Graph graph_{"folded"};
};

// On the host, of settled operands.
class SettledHostCall : public HostCall {
 public:
  SettledHostCall(IslandBuilder& builder, const Instruction& instruction);

  const Item& operand(size_t i) const override;
  void result(size_t i, Item item) override;
  std::vector<Item> run(const Block& body, std::vector<Item> inputs) override;
  int64_t most_iterations() const override { return 0; }
  std::vector<Slot>& results() { return results_; }

 private:
  IslandBuilder& builder_;
  std::vector<Slot> results_;
};

}  // namespace tessera::program
