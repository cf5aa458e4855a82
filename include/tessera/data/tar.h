// Tar archives (POSIX.1-2017, pax; with GNU's long names), for what data sets are: regular files.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

namespace tessera::data {

struct TarMember {
  std::string name;
  uint64_t offset = 0;  // of the contents, in the archive
  uint64_t bytes = 0;
};

// The regular files of an archive, in its order; folders and what describes other members are left out.
// `name` stands in the messages. Throws Error(invalid_file) when a header is truncated or its checksum wrong,
// a member reaches beyond the end, is no regular file (links, devices), or has a name that leads out of the
// archive (absolute, or with a part "..").
std::vector<TarMember> parse_tar(std::span<const std::byte> bytes, const std::string& name);

// Pieces of an archive that are written one after another: a header with name and size, padding after the
// contents, and the end. The bits depend on the arguments alone. Throws Error(invalid_argument) where a name
// is longer than the 100 bytes that every reader knows.
std::vector<std::byte> tar_header(const std::string& name, uint64_t bytes);
uint64_t tar_padding(uint64_t bytes);      // zeros that follow so many bytes of contents
inline constexpr uint64_t kTarEnd = 1024;  // zeros at the end

}  // namespace tessera::data
