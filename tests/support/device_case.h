// Small graphs on a device beside the reference interpreter.
#pragma once

#include <cmath>
#include <limits>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "tessera/base/error.h"
#include "tessera/base/random.h"
#include "tessera/compile/executable.h"
#include "tessera/graph/operator.h"
#include "tessera/passes/decompose.h"

#include "support/comparison.h"
#include "support/operator_tolerance.h"
#include "support/random_tensor.h"

namespace tessera::testing {

// A graph and its inputs.
struct Case {
  std::string name;
  std::unique_ptr<Graph> graph;
  std::vector<Tensor> inputs;
};

inline Case text_case(const std::string& text, uint64_t seed = 1, double low = -2, double high = 2) {
  Case result;
  result.graph = parse_graph(text);
  result.name = result.graph->name();
  for (const auto& input : result.graph->inputs()) {
    result.inputs.push_back(
        random_tensor(input->data_type(), input->type().static_shape(), low, high, ++seed));
  }
  return result;
}

inline std::map<std::string, Tensor> run_inputs(const Case& own) {
  std::map<std::string, Tensor> inputs;
  for (size_t i = 0; i < own.inputs.size(); ++i) inputs[own.graph->inputs()[i]->name()] = own.inputs[i];
  return inputs;
}

struct DeviceRun {
  std::vector<Tensor> outputs;
  std::vector<std::string> kernels;
};

// The graph as it stands, without passes unless `fuse`.
inline DeviceRun run_on(const std::shared_ptr<Device>& device, const Case& own, bool fuse = false) {
  CompileOptions options;
  options.poison_freed = true;
  if (fuse) {
    options.pipeline.verify = true;
  } else {
    for (const Pass& pass : pipeline(options.passes)) options.pipeline.disabled.insert(pass.name);
  }
  const std::unique_ptr<Executable> executable = compile(*own.graph, device, options);
  executable->bind(std::make_shared<Variables>(device));
  const std::map<std::string, Tensor> outputs = executable->run(run_inputs(own));
  DeviceRun result;
  for (const auto& output : own.graph->outputs()) result.outputs.push_back(outputs.at(output.name));
  for (const NodeReport& node : executable->nodes()) result.kernels.push_back(node.kernel);
  return result;
}

// On the device as on the reference, within the tolerances, and the same bits at a second run.
inline void expect_as_reference(const std::shared_ptr<Device>& device, const Case& own,
                                const Tolerances& tolerances, bool fuse = false) {
  // A cluster keeps what is between in fp32, but has the constants of composites in their narrow type.
  const std::unique_ptr<Graph> simple = own.graph->clone();
  decompose_composites(*simple);
  const Expectation expectation = expectation_of(*simple, own.inputs, tolerances);
  const Run run = [&](const std::vector<Tensor>& inputs) {
    return run_on(device, Case{own.name, own.graph->clone(), inputs}, fuse).outputs;
  };
  const Comparison comparison{.graph = *own.graph,
                              .inputs = own.inputs,
                              .expectation = expectation,
                              .context = own.name + "\n" + print(*own.graph),
                              .family = family_of(*own.graph)};
  if (!mutations().empty()) return expect_noticed(comparison, run);
  const std::vector<Tensor> actual = run(own.inputs);
  EXPECT_TRUE(agrees(actual, expectation)) << comparison.context;
  const std::vector<Tensor> again = run(own.inputs);
  for (size_t i = 0; i < actual.size(); ++i)
    EXPECT_TRUE(actual[i].identical(again[i])) << own.name << " differs from run to run";
}

// Of nodes that read nothing but inputs of the graph: within what operators and inputs leave to rounding.
inline void expect_as_reference(const std::shared_ptr<Device>& device, const Case& own) {
  Tolerances tolerances;
  for (const auto& output : own.graph->outputs()) {
    const Node& node = *output.value->producer();
    std::vector<Tensor> inputs;
    for (const Value* input : node.inputs()) {
      require(input->producer() == nullptr, ErrorCode::invalid_argument, "{} reads a result", print(node));
      inputs.push_back(own.inputs.at(input->index()));
    }
    tolerances.push_back(tolerances_of(node, inputs).at(output.value->index()));
  }
  expect_as_reference(device, own, tolerances);
}

// Within the tolerance of the class for such a problem.
inline void expect_as_reference(const std::shared_ptr<Device>& device, const Case& own,
                                OperatorClass operator_class, const Problem& problem, bool fuse = false) {
  Tolerances tolerances;
  for (const auto& output : own.graph->outputs())
    tolerances.push_back(tolerance_for(operator_class, output.value->data_type(), problem));
  expect_as_reference(device, own, tolerances, fuse);
}

}  // namespace tessera::testing
