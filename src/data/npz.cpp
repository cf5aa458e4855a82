#include "tessera/data/npz.h"

#include "tessera/base/error.h"
#include "tessera/base/file.h"
#include "tessera/data/npy.h"
#include "tessera/data/zip.h"

namespace tessera::data {

Feeds parse_npz(std::span<const std::byte> bytes, const std::string& name, uint64_t maximum_bytes,
                const WantedArrays& wanted) {
  constexpr std::string_view kEnding = ".npy";
  std::vector<ZipMember> members = parse_zip(bytes, name);
  const auto array_name = [&](const ZipMember& member) {
    return member.name.substr(0, member.name.size() - kEnding.size());
  };
  uint64_t left = maximum_bytes;
  for (const ZipMember& member : members) {
    require(member.name.size() > kEnding.size() && member.name.ends_with(kEnding), ErrorCode::invalid_file,
            "{}: holds '{}', which is no .npy file", name, member.name);
  }
  if (wanted) std::erase_if(members, [&](const ZipMember& member) { return !wanted(array_name(member)); });
  for (const ZipMember& member : members) {
    require(member.bytes <= left, ErrorCode::invalid_file, "{}: holds more than {} bytes", name,
            maximum_bytes);
    left -= member.bytes;
  }
  Feeds arrays;
  for (const ZipMember& member : members) {
    const std::vector<std::byte> contents = unzip(bytes, member, name);
    arrays[array_name(member)] = parse_npy(contents, name + ": " + member.name);
  }
  return arrays;
}

Feeds read_npz(const std::filesystem::path& path, const WantedArrays& wanted, uint64_t maximum_bytes) {
  const std::vector<std::byte> bytes = read_file(path);
  return parse_npz(bytes, path.string(), maximum_bytes, wanted);
}

}  // namespace tessera::data
