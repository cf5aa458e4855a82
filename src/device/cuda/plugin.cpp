#include "device/cuda/device.h"

namespace {

// Not a lambda: in a program that links several backends all of those would have one name.
tessera::Device* create(const char* options) {
  return new tessera::cuda::CudaDevice(options);
}

}  // namespace

extern "C" {
// Found by name when the library is loaded (tessera/compile/device.h).
extern tessera::Plugin tessera_plugin;
tessera::Plugin tessera_plugin = {.version = tessera::kPluginVersion, .create = create};
}
