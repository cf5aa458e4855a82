#include "tessera/compile/plugin.h"

#include <cstdlib>
#include <string_view>

#include <dlfcn.h>
#include <tessera/interface_version.h>

#include "tessera/base/error.h"

namespace tessera {
namespace {

// Of the library that holds this function: plug-ins lie beside it.
std::filesystem::path library_folder() {
  Dl_info info{};
  dladdr(reinterpret_cast<void*>(&library_folder), &info);
  return std::filesystem::weakly_canonical(info.dli_fname == nullptr ? "." : info.dli_fname).parent_path();
}

}  // namespace

std::filesystem::path plugin_path(const std::string& name) {
  const char* folder = std::getenv("TESSERA_PLUGIN_PATH");
  return (folder != nullptr ? std::filesystem::path(folder) : library_folder()) /
         ("libtessera_" + name + ".so");
}

const void* find_plugin_entry(const PluginRequest& request) {
  const std::filesystem::path path = plugin_path(request.name);
  void* library = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (library == nullptr) {
    const char* reason = dlerror();
    fail(ErrorCode::unsupported, "{} needs {}, which cannot be loaded: {}", request.asker, path.string(),
         reason == nullptr ? "unknown reason" : reason);
  }
  const void* entry = dlsym(library, request.entry);
  require(entry != nullptr, ErrorCode::unsupported, "{} is no {} of Tessera: it lacks '{}'", path.string(),
          request.kind, request.entry);
  return entry;
}

void check_plugin_entry(const PluginRequest& request, const char* interface_version, bool has_create) {
  const std::string path = plugin_path(request.name).string();
  require(interface_version != nullptr && has_create, ErrorCode::unsupported,
          "{} is no {} of Tessera: its '{}' is empty", path, request.kind, request.entry);
  require(interface_version == std::string_view(TESSERA_INTERFACE_VERSION), ErrorCode::unsupported,
          "{} was built against the interface {} of Tessera, and this library has {}: build it anew", path,
          interface_version, TESSERA_INTERFACE_VERSION);
}

}  // namespace tessera
