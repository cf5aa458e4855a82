// Every kernel that a device offers for a node beside the reference loop, not only the first: the tuner may
// take any.
#pragma once

#include <algorithm>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "tessera/compile/device.h"
#include "tessera/graph/operator.h"

#include "support/comparison.h"
#include "support/guarded_memory.h"
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
  const std::shared_ptr<Queue> queue = device.queue();
  queue->fill(memory.get(), 0xff, bytes);
  queue->synchronize();
  return memory;
}

inline std::string buffer_name(size_t buffer, size_t inputs, size_t buffers) {
  if (buffer + 1 == buffers) return "the workspace";
  return buffer < inputs ? fmt::format("input {}", buffer) : fmt::format("output buffer {}", buffer - inputs);
}

// How the memory is that a kernel is run on.
struct RunMemory {
  int poison = kNaNPoison;  // of which outputs and workspace consist before
  bool in_place = false;    // outputs are written over inputs wherever the kernel allows it
};

// For each output the input over which the kernel may write it, as the memory planner would choose; the
// number of inputs where there is none.
inline std::vector<size_t> overwritten_inputs(const Kernel& kernel, const KernelRequest& request) {
  const std::vector<Value*>& inputs = request.node.inputs();
  std::vector<size_t> result;
  for (size_t o = 0; o < request.node.outputs().size(); ++o) {
    const auto allows = [&](size_t i) {
      if (request.frozen_inputs[i] || inputs[i]->type().bytes() != request.node.output(o)->type().bytes())
        return false;
      for (size_t j = 0; j < inputs.size(); ++j) {
        const bool taken = std::find(result.begin(), result.end(), j) != result.end();
        if (inputs[j] == inputs[i] && (taken || !kernel.may_overwrite(o, j))) return false;
      }
      return true;
    };
    size_t i = 0;
    while (i < inputs.size() && !allows(i)) ++i;
    result.push_back(i);
  }
  return result;
}

// Runs the kernel between guard bands, on memory of which it must not read what it has not written; packs
// frozen inputs first. The test fails when the kernel writes to a band or to an input.
inline std::vector<Tensor> run_kernel(Device& device, Kernel& kernel, const KernelRequest& request,
                                      const std::vector<Tensor>& inputs, const RunMemory& memory = {}) {
  const std::vector<Value*>& values = request.node.inputs();
  std::vector<std::unique_ptr<GuardedMemory>> owned;
  std::vector<const void*> sources;
  for (size_t i = 0; i < inputs.size(); ++i) {
    const auto first =
        static_cast<size_t>(std::find(values.begin(), values.end(), values[i]) - values.begin());
    owned.push_back(first < i ? nullptr : std::make_unique<GuardedMemory>(device, inputs[i]));
    sources.push_back(owned[first]->get());
  }
  std::vector<GuardedMemory> owned_packings;
  std::vector<const void*> packed;
  const std::vector<Packing> packings = kernel.packings();
  for (size_t i = 0; i < packings.size(); ++i) {
    EXPECT_TRUE(request.frozen_inputs[packings[i].input]) << "packs an input that may change";
    owned_packings.emplace_back(device, packings[i].bytes, memory.poison);
    kernel.pack(i, sources[packings[i].input], owned_packings.back().get());
    packed.push_back(owned_packings.back().get());
  }
  const std::vector<size_t> overwritten =
      memory.in_place ? overwritten_inputs(kernel, request)
                      : std::vector<size_t>(request.node.outputs().size(), inputs.size());
  std::vector<void*> targets;
  for (size_t i = 0; i < request.node.outputs().size(); ++i) {
    if (overwritten[i] < inputs.size()) {
      targets.push_back(const_cast<void*>(sources[overwritten[i]]));
      continue;
    }
    owned.push_back(
        std::make_unique<GuardedMemory>(device, request.node.output(i)->type().bytes(), memory.poison));
    targets.push_back(owned.back()->get());
  }
  owned.push_back(std::make_unique<GuardedMemory>(device, kernel.workspace_bytes(), memory.poison));
  const std::shared_ptr<Queue> queue = device.queue();
  kernel.run({sources, targets, owned.back()->get(), *queue, packed});
  queue->synchronize();
  for (size_t i = 0; i < owned.size(); ++i) {
    const std::string damage = owned[i] == nullptr ? "" : owned[i]->damage();
    EXPECT_EQ(damage, "") << "written beyond " << buffer_name(i, inputs.size(), owned.size()) << " of "
                          << print(request.node);
  }
  for (const GuardedMemory& packing : owned_packings)
    EXPECT_EQ(packing.damage(), "") << "written beyond a packing of " << print(request.node);
  for (size_t i = 0; i < inputs.size(); ++i) {
    if (std::find(targets.begin(), targets.end(), sources[i]) != targets.end()) continue;
    Tensor after(inputs[i].data_type(), inputs[i].shape());
    device.copy_to_host(after.raw(), sources[i], static_cast<int64_t>(after.bytes()));
    EXPECT_TRUE(after.identical(inputs[i])) << "input " << i << " was written to by " << print(request.node);
  }
  std::vector<Tensor> outputs;
  for (size_t i = 0; i < targets.size(); ++i) {
    const TensorType& type = request.node.output(i)->type();
    outputs.emplace_back(type.data_type, type.static_shape());
    device.copy_to_host(outputs.back().raw(), targets[i], type.bytes());
  }
  return outputs;
}

// Given all outputs of one run, and what to say of it.
using CheckOutputs = std::function<void(const std::vector<Tensor>& outputs, const std::string& context)>;

// Runs a kernel of the candidate, which must be willing, three times: on memory that holds NaN, on memory
// that holds finite numbers, and with outputs in the place of inputs where it allows that. Each result is
// checked, and has the same bits as the first where the request is deterministic.
inline void run_candidate(Device& device, const KernelCandidate& candidate, const KernelRequest& request,
                          const std::vector<Tensor>& inputs, const std::string& context,
                          const CheckOutputs& check) {
  const std::unique_ptr<Kernel> kernel = candidate.create(request);
  const std::vector<size_t> overwritten = overwritten_inputs(*kernel, request);
  std::vector<RunMemory> memories{{}, {.poison = kFinitePoison}};
  if (std::any_of(overwritten.begin(), overwritten.end(), [&](size_t i) { return i < inputs.size(); }))
    memories.push_back({.in_place = true});
  std::vector<Tensor> first;
  for (const RunMemory& memory : memories) {
    const std::vector<Tensor> outputs = run_kernel(device, *kernel, request, inputs, memory);
    const std::string where = context + (memory.in_place ? " (in place)" : "");
    check(outputs, where);
    if (first.empty()) first = outputs;
    for (size_t i = 0; i < outputs.size() && request.deterministic; ++i)
      EXPECT_TRUE(outputs[i].identical(first[i])) << where << ": output " << i << " differs from run to run";
  }
}

// Compares every willing candidate with the reference, with and without frozen inputs, and, where it shall be
// deterministic, with itself. `only`: the candidate of this name alone. `tf32`: products may be in TF32.
// Returns the names of those that ran; the test fails when there is none.
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
  const auto simulated = std::make_shared<SimulatedFaults>();
  std::vector<std::string> names;
  std::string refusals;
  for (const KernelCandidate& candidate : device->candidates(node)) {
    if (candidate.name.starts_with("reference") || (!only.empty() && candidate.name != only)) continue;
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
      Expectation expectation = candidate.rounds_between ? rounded_at_each_node : rounded_once;
      for (Tolerance& tolerance : expectation.tolerances)
        tolerance = amplified(tolerance, candidate.rounding_amplification);
      const Comparison comparison{.graph = *graph,
                                  .inputs = inputs,
                                  .expectation = expectation,
                                  .context = candidate.name + (frozen ? " (frozen) " : " ") + print(node),
                                  .family = family_of(*graph, kind),
                                  .tf32 = tf32,
                                  .simulated = simulated};
      if (!mutations().empty()) {
        expect_noticed(comparison, [&](const std::vector<Tensor>& own) {
          return run_kernel(*device, *candidate.create(request), request, own);
        });
      } else {
        run_candidate(*device, candidate, request, inputs, comparison.context,
                      [&](const std::vector<Tensor>& actual, const std::string& context) {
                        EXPECT_TRUE(agrees(actual, expectation)) << context;
                      });
      }
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
