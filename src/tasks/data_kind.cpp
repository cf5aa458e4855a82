#include "tasks/data_kind.h"

#include <filesystem>

namespace tessera::tasks {

std::vector<Contradiction> of_data(std::vector<Contradiction> found) {
  for (Contradiction& one : found) {
    for (std::string& key : one.keys) key.insert(0, "data.");
  }
  return found;
}

std::string data_name(const Options& settings) {
  const auto path = settings.get_or<std::string>("data.path", "");
  return path.empty() ? settings.text("data.kind") : std::filesystem::path(path).filename().string();
}

}  // namespace tessera::tasks
