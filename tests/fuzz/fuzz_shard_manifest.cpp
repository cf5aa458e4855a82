// Any list of image shards is refused with an Error, or what is wrong with the shards is said; packing goes
// on from what is right of it to as many samples as there are.
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string_view>

#include "tessera/base/error.h"
#include "tessera/data/shards.h"

#include "fuzz.h"
#include "support/temporary_folder.h"

namespace {

using namespace tessera;

// Four small ones, of two classes; nothing decodes them.
class Images final : public data::EncodedSamples {
 public:
  int64_t size() const override { return 4; }
  int32_t label(int64_t index) const override { return static_cast<int32_t>(index % 2); }
  std::string name(int64_t index) const override { return std::to_string(index); }
  const std::vector<std::string>& class_names() const override { return classes_; }
  std::vector<std::byte> bytes(int64_t index) const override {
    return std::vector<std::byte>(8, static_cast<std::byte>(index));
  }

 private:
  std::vector<std::string> classes_{"a", "b"};
};

// Into two shards.
void pack(const std::filesystem::path& folder) {
  const Images images;
  const data::PackResult result = data::pack_shards(images, folder, {.shard_bytes = 4000});
  int64_t samples = 0;
  for (const data::PackedShard& shard : result.shards) samples += shard.samples;
  if (!result.completed || samples != images.size()) std::abort();
}

}  // namespace

int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  static const testing::TemporaryFolder folder;
  static bool is_packed = false;
  if (!is_packed) {
    std::filesystem::remove(folder / "manifest.json");
    pack(folder.path());
    is_packed = true;
  }
  std::ofstream(folder / "manifest.json", std::ios::binary)
      << std::string_view(reinterpret_cast<const char*>(data), size);
  try {
    (void)data::check_shards(folder.path());
    pack(folder.path());
    is_packed = false;  // nothing is written where the list is refused
  } catch (const Error&) {
  }
  return 0;
}
