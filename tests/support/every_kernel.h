// Every kernel that a device offers for a node beside the reference loop, not only the first: the tuner may
// take any.
#pragma once

#include <algorithm>
#include <memory>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "tessera/compile/device.h"
#include "tessera/graph/operator.h"

#include "support/comparison.h"
#include "support/random_tensor.h"
#include "support/unfused.h"

namespace tessera::testing {

inline std::shared_ptr<void> memory_with(Device& device, const Tensor& tensor) {
  const auto bytes = static_cast<int64_t>(tensor.bytes());
  std::shared_ptr<void> memory = device.allocate(std::max<int64_t>(bytes, 1));
  device.copy_from_host(memory.get(), tensor.raw(), bytes);
  return memory;
}

// NaN in every floating type.
inline std::shared_ptr<void> memory_of_ones(Device& device, int64_t bytes) {
  std::shared_ptr<void> memory = device.allocate(std::max<int64_t>(bytes, 1));
  device.fill(memory.get(), 0xff, bytes);
  return memory;
}

// Runs the kernel on memory that holds NaN before; prepares frozen inputs first.
inline std::vector<Tensor> run_kernel(Device& device, Kernel& kernel, const KernelRequest& request,
                                      const std::vector<Tensor>& inputs) {
  std::vector<std::shared_ptr<void>> owned;
  std::vector<const void*> sources;
  for (size_t i = 0; i < inputs.size(); ++i) {
    owned.push_back(memory_with(device, inputs[i]));
    sources.push_back(owned.back().get());
    if (request.frozen_inputs[i]) kernel.prepare(i, sources.back());
  }
  std::vector<void*> targets;
  for (const auto& output : request.node.outputs()) {
    owned.push_back(memory_of_ones(device, output->type().bytes()));
    targets.push_back(owned.back().get());
  }
  owned.push_back(memory_of_ones(device, kernel.workspace_bytes()));
  kernel.run({sources, targets, owned.back().get()});
  device.synchronise();
  std::vector<Tensor> outputs;
  for (size_t i = 0; i < targets.size(); ++i) {
    const TensorType& type = request.node.output(i)->type();
    outputs.emplace_back(type.data_type, type.static_shape());
    device.copy_to_host(outputs.back().raw(), targets[i], type.bytes());
  }
  return outputs;
}

// Runs the body of a fused node kernel by kernel.
inline bool is_of_several_kernels(const KernelCandidate& candidate) {
  return candidate.name == "unfused" || candidate.name == "expanded";
}

// Compares every willing candidate with the reference, with and without frozen inputs, and, where it shall be
// deterministic, twice with itself. `only`: the candidate of this name alone. `tf32`: products may be in
// TF32. Returns the names of those that ran; the test fails when there is none.
inline std::vector<std::string> expect_every_kernel(const Node& node, const std::vector<Tensor>& inputs,
                                                    const Tolerances& tolerances,
                                                    const std::vector<bool>& freezable,
                                                    const std::shared_ptr<Device>& device = Device::cpu(),
                                                    bool deterministic = true, std::string_view only = {},
                                                    bool tf32 = false) {
  const std::unique_ptr<Graph> graph = unfused(node);
  const std::string kind = node.body() != nullptr ? node.attributes().text("kind") : "";
  const Expectation rounded_once = expectation_of(*graph, inputs, tolerances);
  const Expectation rounded_at_each_node =
      kind.empty() ? rounded_once : expectation_of(*graph, inputs, tolerances, true);
  std::vector<std::string> names;
  std::string refusals;
  for (const KernelCandidate& candidate : device->candidates(node)) {
    if (candidate.name == "reference" || (!only.empty() && candidate.name != only)) continue;
    for (const bool frozen : {false, true}) {
      if (frozen && !mutations().empty()) continue;  // the comparison is the same
      const KernelRequest request{
          .node = node,
          .frozen_inputs = frozen ? freezable : std::vector<bool>(inputs.size(), false),
          .deterministic = deterministic,
          .tf32 = tf32};
      if (const std::string refusal = candidate.refusal(request); !refusal.empty()) {
        refusals += "\n  " + candidate.name + ": " + refusal;
        continue;
      }
      const std::string context = candidate.name + (frozen ? " (frozen) " : " ") + print(node);
      Expectation expectation = is_of_several_kernels(candidate) ? rounded_at_each_node : rounded_once;
      for (Tolerance& tolerance : expectation.tolerances)
        tolerance = amplified(tolerance, candidate.rounding_amplification);
      const Run run = [&](const std::vector<Tensor>& own) {
        return run_kernel(*device, *candidate.create(request), request, own);
      };
      const Comparison comparison{.graph = *graph,
                                  .inputs = inputs,
                                  .expectation = expectation,
                                  .context = context,
                                  .family = family_of(*graph, kind),
                                  .tf32 = tf32};
      const std::vector<Tensor> actual = compare(comparison, run);
      const std::vector<Tensor> again = run(inputs);
      for (size_t i = 0; i < actual.size(); ++i)
        EXPECT_TRUE(!deterministic || actual[i].identical(again[i])) << context << " differs from run to run";
      if (!frozen) names.push_back(candidate.name);
    }
  }
  EXPECT_FALSE(names.empty()) << "no kernel but the reference for " << print(node) << refusals;
  return names;
}

// One tensor per input of the node, each of a seed of its own.
inline std::vector<Tensor> random_inputs(const Node& node, double low, double high) {
  std::vector<Tensor> inputs;
  for (const Value* input : node.inputs()) {
    inputs.push_back(
        random_tensor(input->data_type(), input->type().static_shape(), low, high, 17 + inputs.size()));
  }
  return inputs;
}

}  // namespace tessera::testing
