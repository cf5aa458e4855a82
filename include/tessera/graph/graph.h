// The graph: a list of nodes in an order in which they can run, in static single assignment form.
#pragma once

#include <list>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "tessera/graph/attributes.h"
#include "tessera/graph/operand_places.h"
#include "tessera/graph/tensor_type.h"

namespace tessera {

class Graph;
class Node;
struct InputSpecification;
struct OperatorSchema;

// One place where a value is read.
struct Use {
  Node* node;
  size_t index;  // which input
};

// Where a graph's input comes from.
enum class InputRole {
  input,      // given at every run: images, labels, the learning rate
  parameter,  // a trained weight; lives on the device between runs
  state,      // anything else that lives on: momentum, running statistics, the loss scale, the step counter
  constant,   // lives on the device and never changes: what is made of it alone is made once, in training too
};

std::string_view to_string(InputRole role);

// A tensor that a node makes or that enters the graph. Owned by its graph; addresses are stable.
class Value {
 public:
  const std::string& name() const { return name_; }
  const TensorType& type() const { return type_; }
  const SymbolicShape& shape() const { return type_.shape; }
  DataType data_type() const { return type_.data_type; }
  Graph& graph() const { return *graph_; }
  Node* producer() const { return producer_; }  // null for an input of the graph
  size_t index() const { return index_; }       // which output of the producer, or which input of the graph
  InputRole role() const { return role_; }      // of an input of the graph
  // A state's value before the first run, or null: who binds variables need not know of such a state.
  const Tensor* initial() const { return initial_.get(); }
  const std::vector<Use>& uses() const { return uses_; }
  // Whether an output of the graph is this value, or a variable takes it at the end of a run.
  bool is_output_or_update() const { return !ends_.empty(); }
  bool may_be_updated() const {
    return producer_ == nullptr && (role_ == InputRole::parameter || role_ == InputRole::state);
  }

 private:
  friend class Graph;
  // What else reads it: an output of the graph, or an update as its next value.
  struct End {
    bool is_update;
    size_t index;
  };
  std::string name_;
  TensorType type_;
  Graph* graph_ = nullptr;
  Node* producer_ = nullptr;
  size_t index_ = 0;
  InputRole role_ = InputRole::input;
  bool is_updated_ = false;
  std::unique_ptr<const Tensor> initial_;
  std::vector<Use> uses_;
  std::vector<End> ends_;
};

// One application of an operator. Its name is the name of its first output.
class Node {
 public:
  const OperatorSchema& schema() const { return *schema_; }
  const std::string& operator_name() const;
  const std::string& name() const { return outputs_.front()->name(); }
  // The operands that are there.
  const std::vector<Value*>& inputs() const { return inputs_; }
  Value* input(size_t index) const { return inputs_.at(index); }
  // The operand of that number in OperatorSchema::inputs, null when it is left out; and where it stands among
  // inputs(), which is what kernels index by.
  Value* operand(size_t specification) const;
  std::optional<size_t> place(size_t specification) const { return places_.place(specification); }
  const OperandPlaces& places() const { return places_; }
  // Of the input at that place.
  const InputSpecification& specification(size_t place) const;
  // `inputs`, one in the place of each of the node's own, with null where it leaves an operand out: what
  // Graph::add_node takes for another node of its kind.
  std::vector<Value*> operands(std::span<Value* const> inputs) const;
  const std::vector<std::unique_ptr<Value>>& outputs() const { return outputs_; }
  Value* output(size_t index = 0) const { return outputs_.at(index).get(); }
  const Attributes& attributes() const { return attributes_; }
  // The graphs that it holds: the unfused form of a fused node, those that a control operator chooses from or
  // repeats. They read nothing but their own inputs.
  const std::vector<std::unique_ptr<Graph>>& bodies() const { return bodies_; }
  const Graph* body() const;  // the unfused form of a fused node, else null
  Graph& graph() const { return *graph_; }
  // In the graph's order; both must be of one graph.
  bool stands_before(const Node& other) const { return label_ < other.label_; }

 private:
  friend class Graph;
  const OperatorSchema* schema_ = nullptr;
  std::vector<Value*> inputs_;
  OperandPlaces places_;
  std::vector<std::unique_ptr<Value>> outputs_;
  Attributes attributes_;
  std::vector<std::unique_ptr<Graph>> bodies_;
  Graph* graph_ = nullptr;
  std::list<std::unique_ptr<Node>>::iterator position_;
  int64_t label_ = 0;  // grows along the graph's nodes
};

class Graph {
 public:
  struct Output {
    std::string name;
    Value* value;
  };
  // At the end of a run `state` (a parameter or a state) takes the value of `next`.
  struct Update {
    Value* state;
    Value* next;
  };

  explicit Graph(std::string name = "graph") : name_(std::move(name)) {}
  Graph(const Graph&) = delete;
  Graph& operator=(const Graph&) = delete;

  const std::string& name() const { return name_; }
  const std::vector<std::unique_ptr<Value>>& inputs() const { return inputs_; }
  const std::list<std::unique_ptr<Node>>& nodes() const { return nodes_; }
  const std::vector<Output>& outputs() const { return outputs_; }
  const std::vector<Update>& updates() const { return updates_; }

  // A state may have an initial value: one that a pass made, and that Executable::bind() creates where the
  // variables lack it. It must have the state's type, which must be static, and shares the tensor's memory.
  // Throws Error(invalid_graph) when the name is taken, and on an initial value of another type or of
  // something else than a state.
  Value* add_input(InputRole role, const std::string& name, TensorType type,
                   std::optional<Tensor> initial = {});

  // Appends a node at the insertion point. `operands` stand in the order of the operator's specifications,
  // null where an optional one is left out; those at the end may just be missing. Fills in default
  // attributes, checks arity, kinds, types and the number of bodies, and infers the outputs' types. Throws
  // Error(invalid_graph) that names the node, the operator, the inputs' types and the rule that was broken.
  // An empty name becomes "operator_N"; a taken name gets a suffix.
  Node* add_node(std::string_view operator_name, const std::vector<Value*>& operands,
                 Attributes attributes = {}, const std::string& name = "",
                 std::vector<std::unique_ptr<Graph>> bodies = {});
  // The same with one body.
  Node* add_node(std::string_view operator_name, const std::vector<Value*>& operands, Attributes attributes,
                 const std::string& name, std::unique_ptr<Graph> body);

  void add_output(const std::string& name, Value* value);
  void set_output(size_t index, Value* value);
  // Throws Error(invalid_graph) unless `state` is a parameter or a state that has no update yet, of the type
  // of `next`.
  void add_update(Value* state, Value* next);
  void set_update(size_t index, Value* next);
  void erase_outputs();

  // Every reader of `old`, outputs and updates included, reads `replacement` instead; the types must be
  // equal.
  void replace_all_uses(Value* old, Value* replacement);
  void set_input(Node* node, size_t index, Value* value);
  // The node's outputs must have no uses left.
  void erase(Node* node);
  // Removes an input of the graph that nothing reads.
  void erase_input(Value* input);
  // True when a node, an output or an update reads the value.
  bool is_used(const Value* value) const;

  // Where add_node puts nodes: before `node`, or at the end for null.
  void insert_before(Node* node);
  // The node before which add_node inserts; null for the end.
  Node* insertion_point() const;

  // Nodes without a name of their own are called "scope/operator" while a scope is set; "" for none.
  void set_name_scope(std::string scope) { name_scope_ = std::move(scope); }

  // Restores an order in which every node follows its inputs: the present one, but what an earlier node reads
  // comes right before that. The insertion point stays before its node. Throws Error(internal) on a cycle.
  void sort();
  // The same for the nodes from `first` to `last`, where all others stand right already.
  void sort(const Node* first, const Node* last);

  // The value of that name, or null.
  Value* find(std::string_view name) const;
  Value* find_input(std::string_view name) const;
  // Throws Error(invalid_graph) when the name is taken.
  void rename(Value* value, const std::string& name);

  std::unique_ptr<Graph> clone() const;

 private:
  std::string unique_name(const std::string& wanted);
  void remove_use(Value* value, Node* node, size_t index);
  // The output's or update's value is `value` from now on; null while it has none.
  void set_end(Value::End end, Value* value);

  std::string name_;
  std::string name_scope_;
  std::vector<std::unique_ptr<Value>> inputs_;
  std::list<std::unique_ptr<Node>> nodes_;
  std::vector<Output> outputs_;
  std::vector<Update> updates_;
  std::unordered_map<std::string, Value*> names_;
  std::unordered_map<std::string, int64_t> name_counters_;
  std::list<std::unique_ptr<Node>>::iterator insertion_ = nodes_.end();
};

// Keeps add_node before `node` for the life of a scope.
class InsertionPoint {
 public:
  InsertionPoint(Graph& graph, Node* before) : graph_(graph), previous_(graph.insertion_point()) {
    graph_.insert_before(before);
  }
  ~InsertionPoint() { graph_.insert_before(previous_); }
  InsertionPoint(const InsertionPoint&) = delete;
  InsertionPoint& operator=(const InsertionPoint&) = delete;

 private:
  Graph& graph_;
  Node* previous_;
};

// Copies nodes of `source` into `target` at its insertion point. `mapping` gives the target's value for each
// input of the source that the nodes read, and receives every copied output.
using ValueMapping = std::unordered_map<const Value*, Value*>;
Node* copy_node(const Node& node, Graph& target, ValueMapping& mapping);
void copy_nodes(const Graph& source, Graph& target, ValueMapping& mapping);

// A copy in which the bound symbols are numbers. Throws Error(invalid_graph) when an operator refuses a size.
std::unique_ptr<Graph> specialize(const Graph& graph, const SymbolBindings& bindings);

// The symbols in the types of the graph's inputs.
std::set<std::string> free_symbols(const Graph& graph);

// Throws Error(invalid_graph) with node, shapes and rule: names unique and legal, order, uses, arity,
// attribute kinds, inferred types, bodies matching their node, updates of equal type on parameters and states
// only, initial values of states only and of their type.
void verify(const Graph& graph);

// The text form; parse(print(graph)) prints the same text. See docs/graph_text.md.
std::string print(const Graph& graph);
std::string print(const Node& node);
// `source_name` stands before line numbers in Error(invalid_graph). The result is verified.
std::unique_ptr<Graph> parse_graph(std::string_view text, const std::string& source_name = "graph");

}  // namespace tessera
