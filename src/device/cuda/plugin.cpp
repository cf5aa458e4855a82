#include "device/cuda/device.h"

extern "C" {
// Found by name when the library is loaded (tessera/compile/device.h).
extern tessera::Plugin tessera_plugin;
tessera::Plugin tessera_plugin = {
    .version = tessera::kPluginVersion,
    .create = [](const char* options) -> tessera::Device* { return new tessera::cuda::CudaDevice(options); },
};
}
