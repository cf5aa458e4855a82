#include <cstdlib>

#include <fmt/format.h>

#include "tessera/base/error.h"
#include "tessera/base/text.h"
#include "tessera/compile/device.h"
#include "tessera/compile/device_collectives.h"
#include "tessera/distribute/registry.h"
#include "tessera/report/machine.h"

#include "cli/commands.h"
#include "cli/json.h"

namespace tessera::cli {
namespace {

struct EnvironmentVariable {
  const char* name;
  const char* meaning;
};

// All that the library reads; for debugging only.
constexpr EnvironmentVariable kEnvironment[] = {
    {"TESSERA_PLUGIN_PATH", "folder to load libtessera_<device>.so from, instead of the library's own"},
    {"TESSERA_CUDA_PATH",
     "folder that is searched first for libcudnn, libcublasLt, libnvrtc, libcudart, libnccl and libnvjpeg"},
    {"TESSERA_CUDA_CACHE", "folder of the GPU's compiled kernels and plans (default: ~/.cache/tessera/cuda)"},
    {"TESSERA_SYNCHRONIZE",
     "1: each node is waited for, so that a GPU's fault names the node at which it came"},
    {"NVIDIA_TF32_OVERRIDE", "0 forbids TF32 arithmetic, whatever the precision asked for"},
    {"TESSERA_RANK", "which of several ranks this process is; set by `tessera launch`, as what follows"},
    {"TESSERA_RANKS", "how many ranks run together"},
    {"TESSERA_PLACE", "which of the machine's GPUs a rank takes (default: by its place among its ranks)"},
    {"TESSERA_COMMUNICATOR", "by what they exchange tensors (default: local; mpi on several machines)"},
    {"TESSERA_ADDRESS", "where they meet; for `local` a file that they map"},
    {"TESSERA_HEARTBEAT_SECONDS", "a rank that gives no sign of life for so long hangs (default: 30)"},
    {"TESSERA_RESTARTED", "1: `tessera train` goes on from the last checkpoint, where there is one"},
    {"OMP_NUM_THREADS", "threads of the CPU device (default: all cores)"},
};

struct Finding {
  std::string name;
  bool found = false;
  std::string detail;
};

struct DeviceFinding : Finding {
  DeviceDescription description;
};

// By what its collectives go from GPU to GPU, or why they do not.
std::string collectives_of(const std::string& device) {
  const std::shared_ptr<Device> open = Device::open(device);
  const auto* const collectives = open->extension<DeviceCollectives>();
  if (collectives == nullptr) return "";
  try {
    return ", " + collectives->collective_library();
  } catch (const Error& error) {
    return fmt::format(", collectives through the host: {}", error.what());
  }
}

DeviceFinding look_for(const std::string& name) {
  DeviceFinding finding{{.name = name}, {}};
  try {
    std::string fallback;
    finding.description = Device::open(name, &fallback)->description();
    finding.found = true;
    if (name == "auto") {
      finding.detail = device_summary(finding.description, fallback);
      return finding;
    }
    finding.detail = finding.description.model;
    for (const auto& [library, version] : finding.description.versions) {
      finding.detail += fmt::format(", {} {}", library, version);
    }
    finding.detail += collectives_of(name);
  } catch (const Error& error) {
    finding.detail = error.what();
  }
  return finding;
}

Finding look_for_communicator(const std::string& name) {
  try {
    return {name, true, distribute::find_communicator(name).documentation};
  } catch (const Error& error) {
    return {name, false, error.what()};
  }
}

void print_json(const report::MachineInfo& machine, const std::vector<DeviceFinding>& findings,
                const std::vector<Finding>& communicators) {
  nlohmann::json json = {{"version", TESSERA_VERSION},
                         {"machine",
                          {{"processor", machine.processor},
                           {"physical_cores", machine.physical_cores},
                           {"usable_cores", machine.usable_cores},
                           {"memory_bytes", machine.memory_bytes},
                           {"operating_system", machine.operating_system},
                           {"compiler", machine.compiler}}},
                         {"devices", nlohmann::json::array()},
                         {"environment", nlohmann::json::object()}};
  for (const DeviceFinding& finding : findings) {
    json["devices"].push_back({{"name", finding.name},
                               {"found", finding.found},
                               {"detail", finding.detail},
                               {"versions", finding.description.versions},
                               {"memory_bytes", finding.description.memory_bytes}});
  }
  for (const Finding& finding : communicators) {
    json["communicators"].push_back(
        {{"name", finding.name}, {"found", finding.found}, {"detail", finding.detail}});
  }
  for (const EnvironmentVariable& variable : kEnvironment) {
    const char* value = std::getenv(variable.name);
    json["environment"][variable.name] = value == nullptr ? nlohmann::json() : nlohmann::json(value);
  }
  fmt::print("{}\n", dump_json(json, 2));
}

void print(const Finding& finding) {
  fmt::print("  {:<10} {:<8} {}\n", finding.name, finding.found ? "found" : "missing", finding.detail);
}

void print_text(const report::MachineInfo& machine, const std::vector<DeviceFinding>& findings,
                const std::vector<Finding>& communicators) {
  fmt::print("Tessera {} ({})\n", TESSERA_VERSION, machine.compiler);
  fmt::print("{}, {} cores usable, {}, {}\n\nDevices\n", machine.processor, machine.usable_cores,
             format_bytes(static_cast<double>(machine.memory_bytes)), machine.operating_system);
  for (const DeviceFinding& finding : findings) print(finding);
  fmt::print("\nCommunicators, by which several ranks exchange tensors\n");
  for (const Finding& finding : communicators) print(finding);
  fmt::print("\nEnvironment variables (for debugging only)\n");
  for (const EnvironmentVariable& variable : kEnvironment) {
    const char* value = std::getenv(variable.name);
    fmt::print("  {:<20} {:<8} {}\n", variable.name, value == nullptr ? "not set" : value, variable.meaning);
  }
}

void add_doctor(CLI::App* command) {
  auto json = std::make_shared<bool>(false);
  command->add_flag("--json", *json, "Print the same as JSON");
  command->callback([json] {
    std::vector<DeviceFinding> findings;
    for (const char* name : {"reference", "null", "cpu", "cuda", "auto"}) findings.push_back(look_for(name));
    std::vector<Finding> communicators;
    for (const char* name : {distribute::kLocal, distribute::kMpi})
      communicators.push_back(look_for_communicator(name));
    const report::MachineInfo machine = report::read_machine();
    *json ? print_json(machine, findings, communicators) : print_text(machine, findings, communicators);
  });
}

const CommandRegistration kRegistration(
    {.name = "doctor",
     .documentation = "Say what this machine has: devices, libraries that were looked for, settings",
     .add = add_doctor});

}  // namespace
}  // namespace tessera::cli
