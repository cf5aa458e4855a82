// What a plug-in exports.
#pragma once

#include "tessera/compile/device.h"

namespace tessera {

// A library libtessera_NAME.so in the folder of libtessera.so, or in that which TESSERA_PLUGIN_PATH names, is
// the backend NAME of Device::open() when it exports one of these, with C linkage, as tessera_backend:
//
//   #include <tessera/extend.h>
//   #include <tessera/interface_version.h>
//   extern "C" {
//   extern tessera::Backend tessera_backend;
//   tessera::Backend tessera_backend = {TESSERA_INTERFACE_VERSION, create};
//   }
//
// Whatever a plug-in and the library share has the layout that the headers give it, so that it is refused
// unless both were built against the same text.
struct Backend {
  const char* interface_version;
  // `options` is what follows the colon in the device's name. May throw Error.
  Device* (*create)(const char* options);
};
inline constexpr const char* kBackendEntry = "tessera_backend";

}  // namespace tessera
