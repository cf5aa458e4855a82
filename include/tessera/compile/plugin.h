// Libraries that are found and loaded at run time.
#pragma once

#include <filesystem>
#include <string>

namespace tessera {

// libtessera_NAME.so in the folder of libtessera.so, or in that which TESSERA_PLUGIN_PATH names.
std::filesystem::path plugin_path(const std::string& name);

struct PluginRequest {
  std::string asker;  // who needs it, for messages: "device 'cuda'"
  std::string name;
  const char* kind = "";   // what it should be: "backend"
  const char* entry = "";  // by which symbol
};

// Loads it, once and for the life of the process: what it registers and the threads that it starts do not end
// on unload. Throws Error(unsupported) where it cannot be loaded or lacks the symbol.
const void* find_plugin_entry(const PluginRequest& request);
// Throws Error(unsupported) where the entry is empty, or of a plug-in that was built against another
// interface than this library.
void check_plugin_entry(const PluginRequest& request, const char* interface_version, bool has_create);

// Entry: has `interface_version` and `create`. Throws as the two do.
template <typename Entry>
const Entry& load_plugin(const PluginRequest& request) {
  const auto& entry = *static_cast<const Entry*>(find_plugin_entry(request));
  check_plugin_entry(request, entry.interface_version, entry.create != nullptr);
  return entry;
}

}  // namespace tessera
