#include "device/cpu/device.h"

namespace {

// Not a lambda: in a program that links several backends all of those would have one name.
tessera::Device* create(const char*) {
  return new tessera::cpu::CpuDevice;
}

}  // namespace

extern "C" {
// Found by name when the library is loaded (tessera/compile/device.h).
extern tessera::Plugin tessera_plugin;
tessera::Plugin tessera_plugin = {.version = tessera::kPluginVersion, .create = create};
}
