// The CPU as a device: host memory, kernels from the registry of this folder.
#pragma once

#include "tessera/compile/device.h"

namespace tessera::cpu {

class CpuDevice : public Device {
 public:
  DeviceDescription description() const override;
  std::vector<KernelCandidate> candidates(const Node& node) const override;
  bool worth_tuning(const Node& node) const override;

  std::shared_ptr<void> allocate(int64_t bytes) override;
  void copy_from_host(void* device, const void* host, int64_t bytes) override;
  void copy_to_host(void* host, const void* device, int64_t bytes) override;
  void fill(void* device, int byte, int64_t bytes) override;
};

}  // namespace tessera::cpu
