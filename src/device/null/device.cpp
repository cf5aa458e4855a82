#include "tessera/compile/host_memory.h"

namespace tessera {
namespace {

class NullDevice : public HostMemoryDevice {
 public:
  DeviceDescription description() const override {
    return {.name = "null", .model = "plans only", .memory_bytes = 0, .versions = {}};
  }
  bool executes() const override { return false; }
  bool host_accessible() const override { return false; }
  std::vector<KernelCandidate> candidates(const Node&) const override {
    return {{.name = "null",
             .refusal = [](const KernelRequest&) { return std::string(); },
             .create = [](const KernelRequest&) { return std::unique_ptr<Kernel>(); }}};
  }
};

}  // namespace

std::shared_ptr<Device> Device::null() {
  return std::make_shared<NullDevice>();
}

}  // namespace tessera
