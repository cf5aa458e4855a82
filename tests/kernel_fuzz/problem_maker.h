// What the makers of problems share: a graph in the making, and contents for its inputs.
#pragma once

#include <map>
#include <memory>
#include <string>
#include <unordered_map>
#include <vector>

#include "tessera/graph/operator.h"
#include "tessera/ops/functions.h"

#include "kernel_fuzz/draw.h"

namespace tessera::testing {

class ProblemMaker {
 public:
  explicit ProblemMaker(Draw& draw);

  Draw& draw() { return draw_; }
  Graph& graph() { return *graph_; }

  // One of the types, fp32 more often than any other where it is among them; no complex one, whose elements
  // are no single numbers to compare.
  DataType type_of(TypeSet types);
  DataType floating();
  // Of so many axes and at most about so many elements; seldom one without elements.
  Shape shape(int64_t least_rank, int64_t most_rank, int64_t most_elements = 4000);

  // An input of the graph, uniform in [low, high], of which a few elements may be NaN or infinite.
  Value* input(DataType type, const Shape& shape, double low = -1, double high = 1,
               InputRole role = InputRole::input);
  // The same, and all finite.
  Value* finite_input(DataType type, const Shape& shape, double low, double high,
                      InputRole role = InputRole::input);
  Value* input(const Tensor& contents, InputRole role = InputRole::input);
  const Tensor& contents(const Value* input) const { return contents_.at(input); }

  std::shared_ptr<Graph> take_graph() { return std::move(graph_); }

 private:
  Draw& draw_;
  bool spoils_;  // puts in what is not finite
  std::shared_ptr<Graph> graph_ = std::make_shared<Graph>("problem");
  std::unordered_map<const Value*, Tensor> contents_;
};

// Appends one node of the operator, with its inputs.
using MakeNode = void (*)(ProblemMaker& maker);
using NodeMakers = std::map<std::string, MakeNode>;

NodeMakers contraction_makers();
NodeMakers normalization_makers();
NodeMakers pooling_makers();
NodeMakers reduction_makers();
NodeMakers movement_makers();
NodeMakers indexing_makers();
NodeMakers source_makers();
NodeMakers communication_makers();

// Of any operator whose inputs broadcast, by its schema and the ranges of its examples.
void make_elementwise(ProblemMaker& maker, const OperatorSchema& schema);

}  // namespace tessera::testing
