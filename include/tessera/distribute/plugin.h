// What a plug-in that is a communicator exports.
#pragma once

#include "tessera/distribute/registry.h"

namespace tessera::distribute {

// A library libtessera_NAME.so, where plug-ins are looked for (tessera/compile/plugin.h), is the communicator
// NAME of TESSERA_COMMUNICATOR when it exports one of these, with C linkage, as tessera_communicator. It is
// loaded when it is asked for by name, and then registered.
struct CommunicatorPlugin {
  const char* interface_version;  // TESSERA_INTERFACE_VERSION of tessera/interface_version.h
  CommunicatorDescription (*create)();
};
inline constexpr const char* kCommunicatorEntry = "tessera_communicator";

}  // namespace tessera::distribute
