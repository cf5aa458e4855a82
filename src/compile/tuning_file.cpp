#include "compile/tuning_file.h"

#include <chrono>
#include <optional>
#include <thread>

#include <nlohmann/json.hpp>

#include "tessera/base/clock.h"
#include "tessera/base/error.h"
#include "tessera/base/file.h"
#include "tessera/base/file_lock.h"
#include "tessera/base/log.h"

namespace tessera {
namespace {

namespace fs = std::filesystem;
using Json = nlohmann::json;

constexpr int kVersion = 1;
constexpr uint64_t kMaximumBytes = uint64_t{256} << 20;
constexpr double kPatienceSeconds = 10;  // a process holds the lock while it reads and writes the file

FileLock lock(const fs::path& path) {
  const fs::path name = path.string() + ".lock";
  const auto begin = Clock::now();
  while (true) {
    if (std::optional<FileLock> held = FileLock::try_lock(name)) return std::move(*held);
    require(seconds_since(begin) < kPatienceSeconds, ErrorCode::io, "{}: another process ({}) holds it",
            name.string(), FileLock::holder(name));
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
  }
}

}  // namespace

TuningResultsOfDevices parse_tuning_results(std::string_view text) {
  TuningResultsOfDevices devices;
  try {
    const Json json = Json::parse(text);
    if (json.at("version") != kVersion) return {};
    for (const auto& [device, nodes] : json.at("devices").items()) {
      TuningResults& results = devices[device];
      for (const auto& [node, entry] : nodes.items()) {
        results[node] = {entry.at("winner").get<std::string>(),
                         entry.at("microseconds").get<std::map<std::string, double>>()};
      }
    }
  } catch (const Json::exception& error) {
    fail(ErrorCode::invalid_file, "{}", error.what());
  }
  return devices;
}

std::string format_tuning_results(const TuningResultsOfDevices& results) {
  Json json = {{"version", kVersion}, {"devices", Json::object()}};
  for (const auto& [device, nodes] : results) {
    Json& entries = json["devices"][device] = Json::object();
    for (const auto& [node, result] : nodes)
      entries[node] = {{"winner", result.winner}, {"microseconds", result.microseconds}};
  }
  return json.dump(1);
}

TuningResultsOfDevices read_tuning_file(const fs::path& path) {
  std::error_code ignored;
  if (!fs::exists(path, ignored)) return {};
  try {
    return parse_tuning_results(read_text_file(path, kMaximumBytes));
  } catch (const Error& error) {
    if (error.code() == ErrorCode::invalid_file) {
      log_warning("tuning file {} is damaged and will be rebuilt: {}", path.string(), error.what());
    } else {
      log_warning("the tuning file cannot be used: {}", error.what());
    }
  }
  return {};
}

void add_to_tuning_file(const fs::path& path, const std::string& device, const TuningResults& results) {
  if (path.has_parent_path()) make_folder(path.parent_path());
  const FileLock held = lock(path);
  TuningResultsOfDevices devices = read_tuning_file(path);
  for (const auto& [node, result] : results) devices[device][node] = result;
  write_file(path, format_tuning_results(devices));
}

}  // namespace tessera
