// Any file either is refused with an Error or every token of every document can be read and is of the
// vocabulary.
#include <cstdlib>
#include <string>
#include <vector>

#include <sys/mman.h>
#include <unistd.h>

#include "tessera/base/error.h"
#include "tessera/data/token_shards.h"

#include "fuzz.h"

namespace {

void read_all(const tessera::data::TokenShard& shard) {
  std::vector<int32_t> tokens;
  for (int64_t document = 0; document < shard.documents(); ++document) {
    for (int64_t field = 0; field < shard.fields(); ++field) {
      const auto place = shard.place(document, field);
      tokens.resize(static_cast<size_t>(place.end - place.begin));
      shard.read(place.begin, tokens);
      for (const int32_t token : tokens) {
        if (token < 0 || token >= shard.vocabulary()) std::abort();
      }
    }
  }
}

}  // namespace

int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const int file = ::memfd_create("shard", MFD_CLOEXEC);
  if (file < 0 || ::write(file, data, size) != static_cast<ssize_t>(size)) std::abort();
  try {
    const tessera::data::TokenShard shard("/proc/self/fd/" + std::to_string(file));
    read_all(shard);
    shard.verify();
  } catch (const tessera::Error&) {
  }
  ::close(file);
  return 0;
}
