// What layers build into: a graph, and the list of the variables that they asked for.
#pragma once

#include <functional>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "tessera/graph/graph.h"
#include "tessera/nn/initializer.h"
#include "tessera/nn/shard.h"

namespace tessera::nn {

// Training uses batch statistics and dropout; inference uses running statistics.
enum class Mode { training, inference };

// A parameter or a state of a network: what it is called in files, where it starts, how training treats it.
struct Variable {
  std::string name;
  InputRole role = InputRole::parameter;
  Shape shape;
  Initializer initializer;
  bool decays = true;  // weight decay and LARS/LAMB trust ratios apply; not to biases and normalization
  DataType data_type = DataType::fp32;
  bool trainable = true;  // false: a constant of the graph, so that work on it is done once
  bool advances =
      false;  // a state that updates change in inference too, such as the memories of a language model
  bool of_rows = false;  // a state of the batch's rows, of which each rank has its own: nn::RowState
  // Training reads a parameter by ops::gather alone, and updates the rows that a batch reads: a step costs
  // the batch, not the table. Rows that no batch reads keep their values, decay and moments included.
  bool updates_rows = false;
  // How the tensor of that name in a file of torchvision's layout becomes ours: it has `file_shape`, which
  // after viewing as `file_view` (equal element count) and permuting by `permutation` has our element order.
  Shape file_shape;
  Shape file_view;
  std::vector<int64_t> permutation;
  // Of a state that ranks share out, which has the shape of a part: which part it is. In files it is whole.
  std::optional<Shard> shard = {};
};

// File layout to ours, of a shard to this rank's part, and back. Throws Error(invalid_file) naming the
// variable on a wrong shape.
Tensor from_file_layout(const Variable& variable, const Tensor& stored);
Tensor to_file_layout(const Variable& variable, const Tensor& value);

// Which of several ranks builds. All train the same network, each on its own rows of every batch: rank r has
// those after the rows of the ranks before it.
struct Ranks {
  int64_t rank = 0;
  int64_t count = 1;
  // Whose rows batch normalization takes together: so many neighbors', or of all (0).
  int64_t batch_norm_ranks = 1;
};

class Context {
 public:
  // `objective` names the one that is trained, where a task has several.
  Context(Graph& graph, Mode mode, std::string objective = {}, Ranks ranks = {})
      : graph_(graph), mode_(mode), objective_(std::move(objective)), ranks_(ranks) {}

  Graph& graph() const { return graph_; }
  Mode mode() const { return mode_; }
  bool training() const { return mode_ == Mode::training; }
  const Ranks& ranks() const { return ranks_; }
  // False where only another objective is trained: a task may leave out what that does not need.
  bool trains(std::string_view objective) const { return objective_.empty() || objective_ == objective; }

  // Until it ends, the names of variables begin with those of all open scopes, each followed by a dot.
  class Scope {
   public:
    Scope(const Scope&) = delete;
    Scope& operator=(const Scope&) = delete;
    ~Scope() { context_.scope_.resize(before_); }

   private:
    friend class Context;
    Scope(Context& context, std::string_view name);
    Context& context_;
    size_t before_;  // characters of the scopes around it
  };
  [[nodiscard]] Scope scope(std::string_view name) { return {*this, name}; }

  // An input of the graph; the same name twice gives the same value (shared weights), with equal shapes.
  Value* variable(Variable variable);
  // Variables that are asked for from now on, whose names in the present scope begin with `prefix`, stay as
  // they are: parameters are constants of the graph, as with trainable = false, states that do not advance
  // are not updated, and batch normalization takes its running statistics, as torchvision's
  // FrozenBatchNorm2d.
  void freeze(const std::string& prefix) { frozen_.push_back(scope_ + prefix); }
  bool is_frozen(std::string_view name) const;  // in the present scope
  // Parameters that are asked for from now on are read through the function, and through those that were
  // given before: masks, fake quantization, codebooks. It is called once for each parameter, outside of all
  // scopes, and may ask for states and parameters of its own, which nothing transforms: named after the
  // parameter, they are initialized, saved and resumed as all others. What is trained is the parameter, so
  // that gradients pass through what the function makes of it, which must be of the parameter's type and
  // shape (Error(invalid_argument)).
  using Transform = std::function<Value*(const Variable& parameter, Value* value)>;
  void transform(Transform function);
  Value* parameter(const std::string& name, Shape shape, Initializer initializer, bool decays = true);
  // What the state holds at this place: after an update() its new value, so that a layer that is used twice
  // updates its statistics twice.
  Value* state(const std::string& name, Shape shape, Initializer initializer);
  Value* state(Variable variable);
  // `state`, as state() gave it, takes the value of `next` at the end of the step. Ignored in inference and
  // of what is frozen, but for states that advance.
  void update(Value* state, Value* next);

  // In which type later passes over a text find what this one keeps of its tokens: AttentionCache, RowsCache.
  void keep_in(DataType type) { kept_type_ = type; }
  DataType kept_type() const { return kept_type_; }

  // int64[2] = {seed, step}, for random operators; a state named "random_counter", made at first use. The
  // trainer advances it.
  Value* random_counter();
  // Random numbers for the rows of a batch, which are the first axis, are drawn for the rows of all ranks,
  // and each takes its own: N ranks have those that one has. The shape of all, and this rank's part of them.
  SymbolicShape whole_batch(SymbolicShape rows) const;
  Value* own_rows(Value* whole) const;
  // A number that tells this network's random operators apart, in the order of building within a scope.
  int64_t next_random_stream();

  const std::vector<Variable>& variables() const { return variables_; }

 private:
  class Outside;

  Value* transformed(const Variable& parameter, Value* value);
  bool begins_frozen(std::string_view whole_name) const;

  Graph& graph_;
  Mode mode_;
  std::string objective_;
  Ranks ranks_;
  DataType kept_type_ = DataType::fp32;
  std::string scope_;  // "encoder.layer3."
  std::vector<Variable> variables_;
  std::vector<std::string> frozen_;  // what names begin with
  std::vector<Transform> transforms_;
  bool transforms_now_ = false;
  std::map<Value*, Value*> transformed_;  // what parameters are read as
  std::map<Value*, size_t> updated_;      // the new value of a state -> its place among the graph's updates
  std::map<std::string, Value*> newest_;  // name of a state -> its new value
  std::map<std::string, int64_t> random_streams_;  // scope -> how many it has
};

}  // namespace tessera::nn
