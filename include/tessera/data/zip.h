// Zip archives (PKWARE's APPNOTE 6.3, with Zip64): members as they are, or deflated by zlib.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

namespace tessera::data {

struct ZipMember {
  std::string name;
  uint64_t offset = 0;        // of the stored bytes, in the archive
  uint64_t stored_bytes = 0;  // in the archive
  uint64_t bytes = 0;         // of the contents
  bool deflated = false;
  uint32_t checksum = 0;  // CRC-32 of the contents
};

// The files of an archive, by its directory; folders are left out. `name` stands in the messages. Throws
// Error(invalid_file) when the archive is truncated or of several parts, its headers disagree with its
// directory, and when a member is encrypted or compressed otherwise, lies on another or outside of the
// archive, tells of more than deflating can make of its bytes, has the name of another, or one that leads out
// (absolute, or with a part "..").
std::vector<ZipMember> parse_zip(std::span<const std::byte> bytes, const std::string& name);

// The contents of a member. Throws Error(invalid_file) when they are corrupt, not as long as the directory
// says, or have another checksum. Memory grows with what was really decoded.
std::vector<std::byte> unzip(std::span<const std::byte> archive, const ZipMember& member,
                             const std::string& name);

}  // namespace tessera::data
