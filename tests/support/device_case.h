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

#include "support/compare.h"
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

// On the device as on the reference, within the tolerance of the class, and the same bits at a second run.
// `wide` is the same graph in a wider type, for 16-bit clusters: they round once where the reference would
// round at each node.
inline void expect_as_reference(const std::shared_ptr<Device>& device, const Case& own,
                                OperatorClass operator_class, const Problem& problem, bool fuse = false,
                                const Case* wide = nullptr) {
  ReferenceResult expected;
  if (wide == nullptr) {
    expected = run_reference(*own.graph, own.inputs);
  } else {
    std::vector<Tensor> inputs;
    for (size_t i = 0; i < own.inputs.size(); ++i) {
      inputs.push_back(own.inputs[i].cast(wide->graph->inputs()[i]->data_type()));
    }
    expected = run_reference(*wide->graph, inputs);
    for (size_t i = 0; i < expected.outputs.size(); ++i) {
      expected.outputs[i] = expected.outputs[i].cast(own.graph->outputs()[i].value->data_type());
    }
  }
  const DeviceRun actual = run_on(device, own, fuse);
  const DeviceRun again = run_on(device, own, fuse);
  for (size_t i = 0; i < expected.outputs.size(); ++i) {
    const DataType type = expected.outputs[i].data_type();
    Tolerance tolerance = tolerance_for(operator_class, type, problem);
    // Its constants are of the narrow type.
    if (wide != nullptr) tolerance.absolute += unit_roundoff(type) * problem.magnitude;
    expect_close(actual.outputs[i], expected.outputs[i], tolerance,
                 own.name + ", output " + std::to_string(i) + "\n" + print(*own.graph));
    EXPECT_TRUE(actual.outputs[i].identical(again.outputs[i])) << own.name << " differs from run to run";
  }
}

}  // namespace tessera::testing
