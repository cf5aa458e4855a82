#include "tessera/compile/device.h"

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <mutex>

#include <dlfcn.h>
#include <tessera/interface_version.h>

#include "tessera/base/error.h"
#include "tessera/base/log.h"
#include "tessera/base/text.h"
#include "tessera/compile/backend.h"

namespace tessera {
namespace {

// The folder of the library that holds this function: plug-ins lie beside it.
std::filesystem::path library_folder() {
  Dl_info info{};
  dladdr(reinterpret_cast<void*>(&library_folder), &info);
  return std::filesystem::weakly_canonical(info.dli_fname == nullptr ? "." : info.dli_fname).parent_path();
}

std::filesystem::path plugin_path(const std::string& backend) {
  const char* folder = std::getenv("TESSERA_PLUGIN_PATH");
  return (folder != nullptr ? std::filesystem::path(folder) : library_folder()) /
         ("libtessera_" + backend + ".so");
}

std::shared_ptr<Device> load_plugin(const std::string& backend, const std::string& options) {
  const std::filesystem::path path = plugin_path(backend);
  // Left loaded for the life of the process: kernels hold code of it, and OpenMP's threads do not end on
  // unload.
  void* library = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (library == nullptr) {
    const char* reason = dlerror();
    fail(ErrorCode::unsupported, "device '{}' needs {}, which cannot be loaded: {}", backend, path.string(),
         reason == nullptr ? "unknown reason" : reason);
  }
  const auto* entry = static_cast<const Backend*>(dlsym(library, kBackendEntry));
  require(entry != nullptr, ErrorCode::unsupported, "{} is no backend of Tessera: it lacks '{}'",
          path.string(), kBackendEntry);
  require(entry->interface_version != nullptr && entry->create != nullptr, ErrorCode::unsupported,
          "{} is no backend of Tessera: its '{}' is empty", path.string(), kBackendEntry);
  require(entry->interface_version == std::string_view(TESSERA_INTERFACE_VERSION), ErrorCode::unsupported,
          "{} was built against the interface {} of Tessera, and this library has {}: build it anew",
          path.string(), entry->interface_version, TESSERA_INTERFACE_VERSION);
  return std::shared_ptr<Device>(entry->create(options.c_str()));
}

// Without `fallback` the log says, once, why it is no GPU: where there is one, and it has failed, as a
// warning.
std::shared_ptr<Device> fastest(const std::string& options, std::string* fallback) {
  try {
    return load_plugin("cuda", options);
  } catch (const Error& error) {
    if (error.code() != ErrorCode::unsupported && error.code() != ErrorCode::device_fault) throw;
    static std::once_flag said;
    if (fallback != nullptr) {
      *fallback = error.what();
    } else {
      std::call_once(said, [&] {
        const bool failed = error.code() == ErrorCode::device_fault;
        write_log(failed ? LogLevel::warning : LogLevel::info,
                  fmt::format("device 'auto' is the CPU, no GPU: {}", error.what()));
      });
    }
  }
  return load_plugin("cpu", "");
}

}  // namespace

std::shared_ptr<Device> Device::open(const std::string& name, std::string* fallback) {
  if (fallback != nullptr) fallback->clear();
  const size_t colon = name.find(':');
  const std::string backend = name.substr(0, colon);
  const std::string options = colon == std::string::npos ? "" : name.substr(colon + 1);
  if (backend == "reference") return reference();
  if (backend == "null") return null();
  if (backend == "auto") return fastest(options, fallback);
  const std::vector<std::string> backends{"auto", "cpu", "cuda", "null", "reference"};
  require(backend == "cpu" || backend == "cuda" || has_plugin(backend), ErrorCode::invalid_argument,
          "there is no device '{}'{} (devices: {})", name, did_you_mean(backend, backends),
          fmt::join(backends, ", "));
  return load_plugin(backend, options);
}

bool Device::has_plugin(const std::string& backend) {
  const auto fits = [](char c) { return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '_'; };
  return !backend.empty() && std::ranges::all_of(backend, fits) &&
         std::filesystem::exists(plugin_path(backend));
}

std::string device_summary(const DeviceDescription& device, const std::string& fallback) {
  return fmt::format("device: {}{}{}{}", device.name, device.model.empty() ? "" : ", ", device.model,
                     fallback.empty() ? "" : fmt::format("; auto found no GPU: {}", fallback));
}

}  // namespace tessera
