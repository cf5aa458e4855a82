// The CPU as a device: host memory, kernels from the registry of this folder.
#pragma once

#include "tessera/compile/host_memory.h"

namespace tessera::cpu {

class CpuDevice : public HostMemoryDevice {
 public:
  DeviceDescription description() const override;
  std::vector<KernelCandidate> candidates(const Node& node) const override;
  bool tunable(const Node& node) const override;
  PassTarget pass_target(const PassOptions& options) const override;

  std::shared_ptr<void> allocate(int64_t bytes) override;
  std::function<void()> settings_of_thread() const override;
};

}  // namespace tessera::cpu
