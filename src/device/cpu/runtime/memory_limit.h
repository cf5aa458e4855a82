// How much memory this process may have.
#pragma once

#include <cstdint>
#include <filesystem>

namespace tessera::cpu {

// The least limit of the control groups (v1 or v2) that the process is in, in bytes: that of its container.
// The largest number where there is none. `root`: where the file system begins.
int64_t control_group_limit(const std::filesystem::path& root = "/");

// The machine's memory, or what its control groups leave of it, in bytes.
int64_t available_memory();

}  // namespace tessera::cpu
