#include <tessera/interface_version.h>

#include "tessera/compile/backend.h"

#include "device/cuda/device.h"
#include "device/cuda/kernel_registry.h"

namespace {

// Not a lambda: in a program that links several backends all of those would have one name.
tessera::Device* create(const char* options) {
  auto device = std::make_unique<tessera::cuda::CudaDevice>(options);
  tessera::cuda::check_kernels(device->pass_target({}).patterns);
  return device.release();
}

}  // namespace

extern "C" {
// Found by name when the library is loaded (tessera/compile/backend.h).
extern tessera::Backend tessera_backend;
tessera::Backend tessera_backend = {TESSERA_INTERFACE_VERSION, create};
}
