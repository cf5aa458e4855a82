// Any file either is refused with an Error or every token of every document can be read and is of the
// vocabulary.
#include <cstdlib>
#include <vector>

#include "tessera/base/error.h"
#include "tessera/data/token_shards.h"

#include "fuzz.h"
#include "input_file.h"

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
  const InputFile file(data, size);
  try {
    const tessera::data::TokenShard shard(file.path());
    read_all(shard);
    shard.verify();
  } catch (const tessera::Error&) {
  }
  return 0;
}
