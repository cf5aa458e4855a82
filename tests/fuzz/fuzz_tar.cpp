// Any bytes either are refused with an Error or hold members that lie inside and whose names lead nowhere
// else.
#include <cstdlib>
#include <span>
#include <string>

#include "tessera/base/error.h"
#include "tessera/data/tar.h"

#include "fuzz.h"

int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  std::vector<tessera::data::TarMember> members;
  try {
    members = tessera::data::parse_tar(std::as_bytes(std::span(data, size)), "input");
  } catch (const tessera::Error&) {
    return 0;
  }
  for (const tessera::data::TarMember& member : members) {
    if (member.bytes > size || member.offset > size - member.bytes) std::abort();
    if (member.name.empty() || member.name[0] == '/') std::abort();
    if (("/" + member.name + "/").find("/../") != std::string::npos) std::abort();
  }
  return 0;
}
