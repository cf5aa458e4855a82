// How one operator of a foreign network is run: as nodes of a graph, or on the host.
#pragma once

#include <functional>
#include <limits>
#include <string>
#include <vector>

#include "tessera/graph/graph.h"
#include "tessera/program/graph_owner.h"
#include "tessera/program/module.h"

namespace tessera::program {

// What rules see of the instruction.
class Call {
 public:
  explicit Call(const Instruction& instruction) : instruction_(instruction) {}
  virtual ~Call() = default;

  const Instruction& instruction() const { return instruction_; }
  int64_t version() const { return instruction_.version; }
  size_t operand_count() const { return instruction_.operands.size(); }
  size_t result_count() const { return instruction_.results.size(); }
  bool wants(size_t result) const;

  // Arguments by name. Without a default they must be there; throws Error(invalid_file) on another kind.
  bool has_argument(const std::string& name) const;
  int64_t integer(const std::string& name) const;
  int64_t integer(const std::string& name, int64_t otherwise) const;
  double real(const std::string& name, double otherwise) const;
  std::string text(const std::string& name, const std::string& otherwise) const;
  std::vector<int64_t> integers(const std::string& name) const;  // empty when it is not there
  std::vector<double> reals(const std::string& name) const;
  std::vector<std::string> texts(const std::string& name) const;
  Item item(const std::string& name) const;  // absent when it is not there
  const Block& body(const std::string& name) const;

  // Throws Error(invalid_graph) that names the instruction unless the condition holds.
  void require(bool condition, const std::string& rule) const;

 private:
  template <typename T>
  const T* find(const std::string& name) const;

  const Instruction& instruction_;
};

// What a lowering rule sees: operands as values of the graph under construction. Asking for something that is
// known only once the graph has run ends the graph before this instruction; it runs, and the rule is called
// again.
class LowerCall : public Call {
 public:
  using Call::Call;

  virtual Graph& graph() = 0;
  virtual bool has(size_t operand) const = 0;
  virtual Value* operand(size_t i) = 0;  // null when it is left out
  // The same where it holds running statistics.
  virtual Value* statistic(size_t i) = 0;
  // Who trains the graph, or null: it is for inference.
  virtual GraphOwner* trainer() = 0;
  virtual TensorType type(size_t i) = 0;        // without making a value of it
  virtual Tensor known(size_t i) = 0;           // its contents
  virtual const Tensor* settled(size_t i) = 0;  // its contents where they never change, else null
  // A value that stands before the instruction under that name, where this graph makes it, else null.
  virtual Value* made_here(const std::string& name) = 0;
  virtual void result(size_t i, Value* value) = 0;
  virtual void result(size_t i, Tensor value) = 0;
  // The instructions of a body that takes nothing, in this graph; its outputs are the results.
  virtual void inline_body(const Block& body) = 0;
  // The same of a body that takes values; gives its outputs.
  virtual std::vector<Value*> inline_body(const Block& body, const std::vector<Value*>& inputs) = 0;
  // The instruction is to be evaluated after all.
  [[noreturn]] virtual void leave_to_host(const std::string& why) = 0;

  std::vector<int64_t> known_integers(size_t i);
};

// What a rule on the host sees, at every run.
class HostCall : public Call {
 public:
  using Call::Call;

  virtual const Item& operand(size_t i) const = 0;  // absent when it is left out
  virtual void result(size_t i, Item item) = 0;
  // Runs a body; it reads what it captures by name.
  virtual std::vector<Item> run(const Block& body, std::vector<Item> inputs) = 0;
  virtual int64_t most_iterations() const = 0;

  bool has(size_t i) const { return !operand(i).absent(); }
  // Throw Error(invalid_argument) naming the operand when it is something else.
  const Tensor& tensor(size_t i) const;
  const TextTensor& text_tensor(size_t i) const;
  const Item::Sequence& sequence(size_t i) const;
};

// With both functions an instruction is lowered where its operands are tensors and all that is asked for is
// known, and otherwise evaluated.
struct Rule {
  std::string name;
  std::string domain = {};
  int64_t since = 0;  // versions of the operator set
  int64_t until = std::numeric_limits<int64_t>::max();
  std::function<void(LowerCall&)> lower = {};
  std::function<void(HostCall&)> evaluate = {};
  bool random = false;  // another result at each run
};

class RuleRegistry {
 public:
  static RuleRegistry& instance();
  // Throws Error(internal) when versions overlap with those of a rule of that name.
  void add(Rule rule);
  const Rule* find(const Instruction& instruction) const;  // null when there is none
  std::vector<const Rule*> all() const;                    // by domain and name

 private:
  std::map<std::pair<std::string, std::string>, std::vector<Rule>> rules_;
};

struct RuleRegistration {
  explicit RuleRegistration(Rule rule) { RuleRegistry::instance().add(std::move(rule)); }
};

}  // namespace tessera::program
