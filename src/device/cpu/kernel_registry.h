// Which kernels the CPU has for which operator: filled by the files of this folder, read by the device.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "tessera/device/common/kernel_table.h"
#include "tessera/passes/decompose.h"

namespace tessera::cpu {

using backend::checked_candidate;
using backend::kernel_key;

struct CpuKernels {
  // The name of an operator, or "fused:KIND" for a fused node of that kind.
  std::string key;
  // From the one to prefer unmeasured to the one that takes most. The reference loop is added after them.
  std::function<std::vector<KernelCandidate>(const Node& node)> candidates;
  // True when timing the candidates of this node pays; empty: never.
  std::function<bool(const Node& node)> tunable = nullptr;
  // What the node is in simpler ones, where no kernel does better; empty: it has a kernel. The candidates
  // serve bodies of fused nodes, and graphs without fusions.
  std::function<GraphRule(const Node& node)> expansion = nullptr;
};

// Registers before main(): static const CpuKernelRegistration kAdd({.key = "add", .candidates = ...});
// One key may be registered once.
struct CpuKernelRegistration {
  explicit CpuKernelRegistration(CpuKernels kernels);
};

// KernelTable::check() of all that is registered.
void check_kernels(const std::vector<FusionPattern>& patterns);

// The kernels of a key, or null.
const CpuKernels* find_kernels(const std::string& key);

// PassTarget::expansion.
GraphRule expansion_of(const Node& node);

// All candidates of a node: those of its key, the body of a fused node, the reference loop.
std::vector<KernelCandidate> cpu_candidates(const Node& node);

}  // namespace tessera::cpu
