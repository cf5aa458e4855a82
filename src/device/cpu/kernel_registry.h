// Which kernels the CPU has for which operator: filled by the files of this folder, read by the device.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "tessera/compile/kernel.h"

namespace tessera::cpu {

struct CpuKernels {
  // The name of an operator, or "fused:KIND" for a fused node of that kind.
  std::string key;
  // From the one to prefer unmeasured to the one that takes most. The reference loop is added behind them.
  std::function<std::vector<KernelCandidate>(const Node& node)> candidates;
  // True when timing the candidates of this node pays; empty: never.
  std::function<bool(const Node& node)> worth_tuning = nullptr;
};

// Registers before main(): static const CpuKernelRegistration kAdd({.key = "add", .candidates = ...});
// One key may be registered once.
struct CpuKernelRegistration {
  explicit CpuKernelRegistration(CpuKernels kernels);
};

// A candidate that is refused when `check` throws Error(unsupported): its message is the reason.
KernelCandidate checked_candidate(
    const std::string& name, std::function<void(const KernelRequest& request)> check,
    std::function<std::unique_ptr<Kernel>(const KernelRequest& request)> create);

// The key of a node: its operator's name, or "fused:KIND".
std::string kernel_key(const Node& node);

// The kernels of a key, or null.
const CpuKernels* find_kernels(const std::string& key);

}  // namespace tessera::cpu
