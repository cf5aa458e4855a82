#include "tessera/compile/host_memory.h"
#include "tessera/compile/reference_kernel.h"

namespace tessera {
namespace {

class ReferenceDevice : public HostMemoryDevice {
 public:
  DeviceDescription description() const override {
    return {.name = "reference", .model = "plain loops", .memory_bytes = 0, .versions = {}};
  }
  std::vector<KernelCandidate> candidates(const Node&) const override { return {reference_candidate()}; }
};

}  // namespace

std::shared_ptr<Device> Device::reference() {
  return std::make_shared<ReferenceDevice>();
}

}  // namespace tessera
