#include <algorithm>

#include "tessera/base/error.h"
#include "tessera/base/text.h"
#include "tessera/data/tar.h"

#include "data/image/shard_index.h"
#include "data/sample_files.h"

namespace tessera::data {
namespace {

// "KEY" and "jpg" of "folder/KEY.jpg": the ending begins at the first point of the file's name.
struct SampleName {
  std::string_view key;
  std::string_view ending;
};
SampleName sample_name(std::string_view member) {
  const size_t folder = member.find_last_of('/');
  const size_t point = member.find('.', folder == std::string_view::npos ? 0 : folder + 1);
  if (point == std::string_view::npos) return {member, {}};
  return {member.substr(0, point), member.substr(point + 1)};
}

// A class's number, with or without a line's end.
int32_t parse_label(std::string_view text, const std::string& name) {
  while (!text.empty() && (text.back() == '\n' || text.back() == '\r' || text.back() == ' '))
    text.remove_suffix(1);
  const int64_t label = parse_integer(text).value_or(-1);
  require(label >= 0 && label < kMostClasses, ErrorCode::invalid_file,
          "{}: holds '{}', expected the number of a class", name, text.substr(0, 20));
  return static_cast<int32_t>(label);
}

// The samples of one shard, whose members of one key lie side by side.
std::vector<ShardEntry> index_shard(const MappedFile& shard, int32_t number) {
  const std::string path = shard.path().string();
  std::vector<ShardEntry> entries;
  std::string key;
  ShardEntry entry;
  bool has_label = false;
  const auto close = [&] {
    if (entry.bytes == 0) return;
    require(has_label, ErrorCode::invalid_file, "{}: '{}' has no class: {}.cls is missing beside it", path,
            key, key);
    entries.push_back(entry);
  };
  for (const TarMember& member : parse_tar(shard.bytes(), path)) {
    const SampleName name = sample_name(member.name);
    if (name.key != key) {
      close();
      key = name.key;
      entry = {.shard = number};
      has_label = false;
    }
    const std::string full_name = path + ": " + member.name;
    if (name.ending == "cls") {
      entry.label = parse_label({reinterpret_cast<const char*>(shard.bytes().data()) + member.offset,
                                 std::min<uint64_t>(member.bytes, 16)},
                                full_name);
      has_label = true;
    } else if (name.ending.find('.') == std::string_view::npos &&
               image_samples().has_ending("image." + std::string(name.ending))) {
      require(entry.bytes == 0 && member.bytes > 0 && member.bytes <= kLargestSample, ErrorCode::invalid_file,
              "{}: is empty, too large, or the second image of its key", full_name);
      entry.offset = static_cast<int64_t>(member.offset);
      entry.bytes = static_cast<int64_t>(member.bytes);
    }
  }
  close();
  return entries;
}

}  // namespace

bool is_tar_shard(const std::filesystem::path& file) {
  return file.extension() == ".tar";
}

std::shared_ptr<const EncodedSamples> open_tar_shards(const std::filesystem::path& folder,
                                                      const SplitOptions& options) {
  return open_shards(folder, options,
                     {.name = "tar shards",
                      .naming = "files ending in .tar",
                      .is_shard = is_tar_shard,
                      .index = index_shard});
}

}  // namespace tessera::data
