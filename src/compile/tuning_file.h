// The tuner's results in a file: JSON, by device and by node.
#pragma once

#include <filesystem>
#include <map>
#include <string>
#include <string_view>

namespace tessera {

struct TuningResult {
  std::string winner;
  std::map<std::string, double> microseconds;  // by candidate

  bool operator==(const TuningResult&) const = default;
};

using TuningResults = std::map<std::string, TuningResult>;  // by Tuner::key_of()
using TuningResultsOfDevices =
    std::map<std::string, TuningResults>;  // by the device, its model and its libraries

// Throws Error(invalid_file) on anything that format_tuning_results() cannot have written. Nothing where
// another version of the format wrote it.
TuningResultsOfDevices parse_tuning_results(std::string_view text);
std::string format_tuning_results(const TuningResultsOfDevices& results);

// What the file holds; nothing, with a warning, where it is damaged or cannot be read, and nothing without
// one where it is not there.
TuningResultsOfDevices read_tuning_file(const std::filesystem::path& path);

// Adds the results to the device's in the file and keeps all others there: those of other devices, and those
// that other processes have added meanwhile. Only one process at a time changes the file, and it is never
// half written. Throws Error(io), also where another process holds the file's lock for more than ten seconds.
void add_to_tuning_file(const std::filesystem::path& path, const std::string& device,
                        const TuningResults& results);

}  // namespace tessera
