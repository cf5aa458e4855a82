#include "device/cpu/runtime/memory_limit.h"

#include <algorithm>
#include <fstream>
#include <limits>
#include <string>

#include <unistd.h>

namespace tessera::cpu {
namespace {

constexpr int64_t kNoLimit = std::numeric_limits<int64_t>::max();

// "max", and what is no number, is no limit.
int64_t read_limit(const std::filesystem::path& file) {
  std::ifstream stream(file);
  int64_t bytes = 0;
  return stream >> bytes && bytes > 0 ? bytes : kNoLimit;
}

// Each group's limit holds for all below it. A container that sees no groups above its own finds its own at
// the top.
int64_t limit_along(const std::filesystem::path& top, const std::filesystem::path& group, const char* file) {
  int64_t limit = read_limit(top / file);
  std::filesystem::path folder = top;
  for (const std::filesystem::path& name : group.relative_path()) {
    folder /= name;
    limit = std::min(limit, read_limit(folder / file));
  }
  return limit;
}

}  // namespace

int64_t control_group_limit(const std::filesystem::path& root) {
  const std::filesystem::path top = root / "sys/fs/cgroup";
  int64_t limit = kNoLimit;
  std::ifstream groups(root / "proc/self/cgroup");
  // NUMBER:CONTROLLERS:PATH, without controllers in v2
  for (std::string line; std::getline(groups, line);) {
    const size_t first = line.find(':');
    const size_t second = line.find(':', first + 1);
    if (first == std::string::npos || second == std::string::npos) continue;
    const std::string controllers = "," + line.substr(first + 1, second - first - 1) + ",";
    const std::string group = line.substr(second + 1);
    if (controllers == ",,") limit = std::min(limit, limit_along(top, group, "memory.max"));
    if (controllers.find(",memory,") != std::string::npos)
      limit = std::min(limit, limit_along(top / "memory", group, "memory.limit_in_bytes"));
  }
  return limit;
}

int64_t available_memory() {
  return std::min(int64_t{sysconf(_SC_PHYS_PAGES)} * sysconf(_SC_PAGESIZE), control_group_limit());
}

}  // namespace tessera::cpu
