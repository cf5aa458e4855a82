// What this program runs on, for reports, summaries and `tessera doctor`.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace tessera::report {

struct MachineInfo {
  std::string processor = {};         // "Intel(R) Xeon(R) Platinum 8370C CPU @ 2.80GHz"
  int physical_cores = 1;             // of the machine
  int logical_cores = 1;              // of the machine: hardware threads
  int usable_cores = 1;               // hardware threads this process may run on
  uint64_t memory_bytes = 0;          // of the machine; 0: unknown
  std::string operating_system = {};  // "Debian GNU/Linux 12 (bookworm)"
  std::string architecture = {};      // "x86_64"
  std::string compiler = {};          // that built the library: "GCC 12.2.0"
  std::string tessera_version = {};   // "0.1.0"
};

// Never throws: what cannot be found out is "unknown".
MachineInfo read_machine();

// Its two parsers, for text in the form of /proc/cpuinfo and /etc/os-release. The first sets
// processor, physical_cores and logical_cores as far as the text tells.
void parse_cpuinfo(std::string_view text, MachineInfo& machine);
std::string parse_os_release(std::string_view text);

}  // namespace tessera::report
