// What layers build into: a graph, and the list of the variables that they asked for.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "tessera/graph/graph.h"
#include "tessera/nn/initializer.h"

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
  // How the tensor of that name in a file of torchvision's layout becomes ours: it has `file_shape`, which
  // after viewing as `file_view` (equal element count) and permuting by `permutation` has our element order.
  Shape file_shape;
  Shape file_view;
  std::vector<int64_t> permutation;
};

// File layout to ours and back. Throws Error(invalid_file) naming the variable on a wrong shape.
Tensor from_file_layout(const Variable& variable, const Tensor& stored);
Tensor to_file_layout(const Variable& variable, const Tensor& value);

class Context {
 public:
  Context(Graph& graph, Mode mode) : graph_(graph), mode_(mode) {}

  Graph& graph() const { return graph_; }
  Mode mode() const { return mode_; }
  bool training() const { return mode_ == Mode::training; }

  // An input of the graph; the same name twice gives the same value (shared weights), with equal shapes.
  Value* variable(Variable variable);
  Value* parameter(const std::string& name, Shape shape, Initializer initializer, bool decays = true);
  Value* state(const std::string& name, Shape shape, Initializer initializer);
  // In training, `state` takes the value of `next` at the end of the step; ignored in inference.
  void update(Value* state, Value* next);

  // int64[2] = {seed, step}, for random operators; a state named "random_counter", made at first use. The
  // trainer advances it.
  Value* random_counter();
  // A number that tells this network's random operators apart, in the order of building.
  int64_t next_random_stream() { return random_streams_++; }

  const std::vector<Variable>& variables() const { return variables_; }

 private:
  Graph& graph_;
  Mode mode_;
  std::vector<Variable> variables_;
  int64_t random_streams_ = 0;
};

}  // namespace tessera::nn
