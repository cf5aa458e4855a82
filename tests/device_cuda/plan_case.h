// Plans of whole networks for a card that is not there.
#pragma once

#include <algorithm>
#include <memory>
#include <string>

#include "tessera/compile/executable.h"
#include "tessera/models/registry.h"

#include "support/training_step.h"

namespace tessera::testing {

inline std::unique_ptr<Executable> planned(
    const Graph& graph, const PassOptions& passes,
    const std::shared_ptr<Device>& device = Device::open("cuda:plan-h100")) {
  CompileOptions options;
  options.passes = passes;
  return compile(graph, device, options);
}

// The training step of a network from the list, in `passes.precision`.
inline std::unique_ptr<Executable> planned_training(
    const std::string& network, int64_t batch, const PassOptions& passes,
    const std::shared_ptr<Device>& device = Device::open("cuda:plan-h100")) {
  const models::Model model = models::create(network);
  const train::StepGraph step = training_step(model, {.batch = batch, .precision = passes.precision});
  return planned(*step.graph, passes, device);
}

template <typename Predicate>
size_t count_nodes(const Executable& executable, const Predicate& predicate) {
  const auto& nodes = executable.nodes();
  return static_cast<size_t>(std::count_if(nodes.begin(), nodes.end(), predicate));
}

inline size_t count_of_kernel(const Executable& executable, const std::string& kernel) {
  return count_nodes(executable, [&](const NodeReport& node) { return node.kernel == kernel; });
}

}  // namespace tessera::testing
