// The devices of this machine that tests of whole networks run on.
#pragma once

#include <memory>
#include <vector>

#include "tessera/base/error.h"
#include "tessera/compile/device.h"

namespace tessera::testing {

// The CPU, and the GPU where there is one.
inline std::vector<std::shared_ptr<Device>> available_devices() {
  std::vector<std::shared_ptr<Device>> devices{Device::cpu()};
  try {
    devices.push_back(Device::open("cuda"));
  } catch (const Error&) {
    // No GPU, or no plug-in for it: nothing to test.
  }
  return devices;
}

}  // namespace tessera::testing
