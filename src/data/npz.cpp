#include "tessera/data/npz.h"

#include "tessera/base/error.h"
#include "tessera/base/file.h"
#include "tessera/data/npy.h"
#include "tessera/data/zip.h"

namespace tessera::data {

Feeds parse_npz(std::span<const std::byte> bytes, const std::string& name, uint64_t maximum_bytes) {
  constexpr std::string_view kEnding = ".npy";
  const std::vector<ZipMember> members = parse_zip(bytes, name);
  uint64_t left = maximum_bytes;
  for (const ZipMember& member : members) {
    require(member.name.size() > kEnding.size() && member.name.ends_with(kEnding), ErrorCode::invalid_file,
            "{}: holds '{}', which is no .npy file", name, member.name);
    require(member.bytes <= left, ErrorCode::invalid_file, "{}: holds more than {} bytes", name,
            maximum_bytes);
    left -= member.bytes;
  }
  Feeds arrays;
  for (const ZipMember& member : members) {
    const std::vector<std::byte> contents = unzip(bytes, member, name);
    arrays[member.name.substr(0, member.name.size() - kEnding.size())] =
        parse_npy(contents, name + ": " + member.name);
  }
  return arrays;
}

Feeds read_npz(const std::filesystem::path& path, uint64_t maximum_bytes) {
  const std::vector<std::byte> bytes = read_file(path);
  return parse_npz(bytes, path.string(), maximum_bytes);
}

}  // namespace tessera::data
