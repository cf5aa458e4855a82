#include "device/cpu/device.h"

extern "C" {
// Found by name when the library is loaded (tessera/compile/device.h).
extern tessera::Plugin tessera_plugin;
tessera::Plugin tessera_plugin = {
    .version = tessera::kPluginVersion,
    .create = [](const char*) -> tessera::Device* { return new tessera::cpu::CpuDevice; },
};
}
