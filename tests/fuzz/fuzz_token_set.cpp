// Any list of token shards is refused with an Error or names those of its folder, as they are.
#include <cstdlib>
#include <fstream>
#include <string_view>

#include "tessera/base/error.h"
#include "tessera/data/token_shards.h"

#include "fuzz.h"
#include "support/temporary_folder.h"

namespace {

using namespace tessera;

// With one shard, which the seeds name.
class Folder {
 public:
  Folder() {
    data::write_token_shard(folder_ / "a.tokens", {.tokens = {5, 6, 7}, .ends = {1, 3}}, {.vocabulary = 9});
  }

  const std::filesystem::path& with(std::string_view list) const {
    std::ofstream(folder_ / "tokens.json", std::ios::binary) << list;
    return folder_.path();
  }

 private:
  testing::TemporaryFolder folder_;
};

}  // namespace

int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  static const Folder folder;
  try {
    const data::TokenSet set(folder.with({reinterpret_cast<const char*>(data), size}));
    const auto shards = static_cast<int64_t>(set.shards().size());
    if (shards == 0 || set.documents() != 2 * shards || set.tokens() != 3 * shards) std::abort();
    if (set.header().vocabulary != 9 || set.header().fields != 1) std::abort();
    for (const auto id :
         {set.header().begin, set.header().separator, set.header().padding, set.header().mask}) {
      if (id.has_value() && (*id < 0 || *id >= 9)) std::abort();
    }
    set.verify();
  } catch (const Error&) {
  }
  return 0;
}
