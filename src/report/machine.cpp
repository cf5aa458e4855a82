#include "tessera/report/machine.h"

#include <algorithm>
#include <fstream>
#include <set>
#include <sstream>
#include <thread>
#include <utility>

#include <fmt/format.h>
#include <sched.h>
#include <sys/utsname.h>
#include <unistd.h>

#ifndef TESSERA_VERSION
#define TESSERA_VERSION "unknown"
#endif

namespace tessera::report {
namespace {

std::string_view trim(std::string_view text) {
  const size_t begin = text.find_first_not_of(" \t\r\"");
  if (begin == std::string_view::npos) return "";
  return text.substr(begin, text.find_last_not_of(" \t\r\"") - begin + 1);
}

// Calls visit(key, value) for each line "key SEPARATOR value", both trimmed.
template <typename Visit>
void for_each_pair(std::string_view text, char separator, const Visit& visit) {
  while (!text.empty()) {
    const size_t end = std::min(text.find('\n'), text.size());
    const std::string_view line = text.substr(0, end);
    text.remove_prefix(std::min(end + 1, text.size()));
    const size_t split = line.find(separator);
    if (split == std::string_view::npos) continue;
    visit(trim(line.substr(0, split)), trim(line.substr(split + 1)));
  }
}

// Files under /proc tell no size, so they are read as streams.
std::string read_whole(const char* path) {
  std::ostringstream text;
  text << std::ifstream(path).rdbuf();
  return text.str();
}

std::string compiler_name() {
#if defined(__clang__)
  return fmt::format("Clang {}.{}.{}", __clang_major__, __clang_minor__, __clang_patchlevel__);
#elif defined(__GNUC__)
  return fmt::format("GCC {}.{}.{}", __GNUC__, __GNUC_MINOR__, __GNUC_PATCHLEVEL__);
#else
  return "unknown";
#endif
}

int count_usable_cores() {
  cpu_set_t allowed;
  if (sched_getaffinity(0, sizeof(allowed), &allowed) == 0) return std::max(CPU_COUNT(&allowed), 1);
  return std::max(1, static_cast<int>(std::thread::hardware_concurrency()));
}

}  // namespace

void parse_cpuinfo(std::string_view text, MachineInfo& machine) {
  int processors = 0;
  std::string package;
  std::set<std::pair<std::string, std::string>> cores;  // (package, core)
  for_each_pair(text, ':', [&](std::string_view key, std::string_view value) {
    if (key == "processor") ++processors;
    if (key == "model name" && machine.processor.empty()) machine.processor = value;
    if (key == "physical id") package = value;
    if (key == "core id") cores.emplace(package, value);
  });
  if (processors > 0) machine.logical_cores = processors;
  // Processors other than x86 do not name their cores: then each hardware thread counts as one.
  machine.physical_cores = cores.empty() ? machine.logical_cores : static_cast<int>(cores.size());
}

std::string parse_os_release(std::string_view text) {
  std::string name;
  for_each_pair(text, '=', [&](std::string_view key, std::string_view value) {
    if (key == "PRETTY_NAME") name = value;
  });
  return name;
}

MachineInfo read_machine() {
  MachineInfo machine;
  machine.usable_cores = count_usable_cores();
  machine.logical_cores = machine.usable_cores;
  parse_cpuinfo(read_whole("/proc/cpuinfo"), machine);
  machine.operating_system = parse_os_release(read_whole("/etc/os-release"));
  utsname system{};
  if (uname(&system) == 0) {
    machine.architecture = system.machine;
    if (machine.operating_system.empty()) machine.operating_system = system.sysname;
  }
  if (machine.processor.empty()) {
    machine.processor = machine.architecture.empty() ? "unknown" : machine.architecture + " processor";
  }
  const long pages = sysconf(_SC_PHYS_PAGES);
  const long page_bytes = sysconf(_SC_PAGESIZE);
  if (pages > 0 && page_bytes > 0) {
    machine.memory_bytes = static_cast<uint64_t>(pages) * static_cast<uint64_t>(page_bytes);
  }
  machine.compiler = compiler_name();
  machine.tessera_version = TESSERA_VERSION;
  return machine;
}

}  // namespace tessera::report
