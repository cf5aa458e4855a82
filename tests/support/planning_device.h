// A device that plans as the null device does, for the passes' target of another.
#pragma once

#include <utility>
#include <vector>

#include "tessera/compile/host_memory.h"

namespace tessera::testing {

class PlanningDevice : public HostMemoryDevice {
 public:
  explicit PlanningDevice(PassTarget target) : target_(std::move(target)) {}

  DeviceDescription description() const override { return null_->description(); }
  bool executes() const override { return false; }
  bool host_accessible() const override { return false; }
  PassTarget pass_target(const PassOptions&) const override { return target_; }
  std::vector<KernelCandidate> candidates(const Node& node) const override { return null_->candidates(node); }

 private:
  PassTarget target_;
  std::shared_ptr<Device> null_ = Device::null();
};

}  // namespace tessera::testing
