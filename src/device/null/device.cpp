#include "tessera/compile/host_memory.h"
#include "tessera/device/common/batch_norm_patterns.h"
#include "tessera/device/common/contraction_pattern.h"

namespace tessera {
namespace {

class NullDevice : public HostMemoryDevice {
 public:
  DeviceDescription description() const override {
    return {.name = "null", .model = "plans only", .memory_bytes = 0, .versions = {}};
  }
  bool executes() const override { return false; }
  bool host_accessible() const override { return false; }
  // As a device that has kernels for all that is commonly fused.
  PassTarget pass_target(const PassOptions&) const override {
    return {.patterns = {backend::batch_norm_gradient_pattern(), backend::recomputed_batch_norm_pattern(),
                         backend::batch_norm_pattern(), backend::contraction_pattern("convolution"),
                         backend::contraction_pattern("matmul")}};
  }
  std::vector<KernelCandidate> candidates(const Node&) const override {
    return {
        {.name = "null", .plan = [](const KernelRequest&) { return KernelMaker([] { return nullptr; }); }}};
  }
};

}  // namespace

std::shared_ptr<Device> Device::null() {
  return std::make_shared<NullDevice>();
}

}  // namespace tessera
