#include "tessera/compile/device.h"

#include <algorithm>
#include <filesystem>
#include <mutex>

#include "tessera/base/error.h"
#include "tessera/base/log.h"
#include "tessera/base/text.h"
#include "tessera/compile/backend.h"
#include "tessera/compile/plugin.h"

namespace tessera {
namespace {

std::shared_ptr<Device> load_backend(const std::string& name, const std::string& options) {
  const auto& backend = load_plugin<Backend>(
      {.asker = fmt::format("device '{}'", name), .name = name, .kind = "backend", .entry = kBackendEntry});
  return std::shared_ptr<Device>(backend.create(options.c_str()));
}

// Without `fallback` the log says, once, why it is no GPU: where there is one, and it has failed, as a
// warning.
std::shared_ptr<Device> fastest(const std::string& options, std::string* fallback) {
  try {
    return load_backend("cuda", options);
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
  return load_backend("cpu", "");
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
  if (backend == "cpu" || backend == "cuda" || has_plugin(backend)) return load_backend(backend, options);
  fail(ErrorCode::invalid_argument, "there is no device '{}'{} (devices: {})", name,
       did_you_mean(backend, backends), fmt::join(backends, ", "));
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
