// The examples of the registry as graphs and tensors, for the tests that are derived from it.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "tessera/graph/operator.h"

#include "support/random_tensor.h"

namespace tessera::testing {

// One node of the operator over inputs of the graph, and values for the inputs.
struct ExampleGraph {
  std::unique_ptr<Graph> graph;
  Node* node = nullptr;
  std::vector<Value*> inputs;
  std::vector<Tensor> tensors;  // the same at every call
  std::string label;            // for messages: "add example 2 in fp16"
};

// The example as it stands, or with each floating input that may be of the given type changed to it. Nothing
// when no input may be.
ExampleGraph make_example(const OperatorSchema& schema, size_t index);
std::optional<ExampleGraph> make_example(const OperatorSchema& schema, size_t index, DataType floating);

// The example as it stands when it has no floating input, else in each of the four floating types that it may
// have.
std::vector<ExampleGraph> all_types(const OperatorSchema& schema, size_t index);

// Names of all operators, and how googletest prints them.
std::vector<std::string> operator_names();

// Runs one operator on tensors.
std::vector<Tensor> run_operator(const std::string& name, const std::vector<Tensor>& inputs,
                                 const Attributes& attributes = {});

bool all_finite(const Tensor& tensor);

}  // namespace tessera::testing
