// What a network is trained for: what it is given, what training makes smaller, what is measured and what is
// served. The trainer knows networks by this alone.
#pragma once

#include <functional>
#include <initializer_list>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "tessera/graph/field.h"
#include "tessera/nn/context.h"

namespace tessera::nn {

// Values of a graph by name, in the order in which they were added.
class Values {
 public:
  Values() = default;
  Values(std::initializer_list<std::pair<std::string, Value*>> values) : values_(values) {}

  // Throws Error(invalid_argument) with the nearest name.
  Value* operator[](std::string_view name) const;
  void add(std::string name, Value* value) { values_.emplace_back(std::move(name), value); }

  auto begin() const { return values_.begin(); }
  auto end() const { return values_.end(); }

 private:
  std::vector<std::pair<std::string, Value*>> values_;
};

// A sum and what it is divided by, both fp32 scalars: losses and how many rows they are of, hits and places
// looked at. Sums add up over batches that are accumulated, sizes and ranks, where means do not. A weight of
// 0 goes with a sum of 0.
struct Measure {
  std::string name;
  Value* sum = nullptr;
  Value* weight = nullptr;
};

// The sum of the elements of any floating type in fp32, and how many they are.
Measure mean_of(std::string name, Value* elements);
// The sum of elements[i] * weights[i] and of the weights: what does not count has the weight 0. One shape, or
// one that broadcasts to that of the elements.
Measure mean_of(std::string name, Value* elements, Value* weights);
// The sum of the means of several: losses that are trained together.
Measure total_of(std::string name, const std::vector<Measure>& measures);

struct Training {
  std::vector<Measure> objectives;    // what the phases of a training make smaller, by name
  std::vector<Measure> metrics = {};  // what is shown beside them
};

// How people read a number that training or an evaluator measures.
struct Metric {
  std::string name;
  bool percent = false;  // a share of 1
  bool larger_is_better = false;
};

// Buildable into any graph, at any sizes.
struct Task {
  std::string name;           // "image_classification"
  std::string network;        // "resnet50": checkpoints name it, and fit no other
  std::vector<Field> inputs;  // with symbols for what varies between batches
  std::vector<Metric>
      metrics;  // objectives, metrics and an evaluator's results, in the order of showing them
  std::string samples = "samples";  // what a row of a batch is, in the plural
  std::function<Training(Context& context, const Values& inputs)> training;
  // What is exported and served. May leave inputs unread that are known in training only.
  std::function<Values(Context& context, const Values& inputs)> inference = {};
  // What an evaluator reads of each batch; empty: what is served.
  std::function<Values(Context& context, const Values& inputs)> evaluation = {};
};

// Appends the task's inputs to the graph, at these sizes. Throws Error(invalid_argument) naming the input and
// the symbol that has no size.
Values add_inputs(Graph& graph, const Task& task, const SymbolBindings& sizes);
// The same at any size: their symbols stay.
Values add_inputs(Graph& graph, const Task& task);

}  // namespace tessera::nn
