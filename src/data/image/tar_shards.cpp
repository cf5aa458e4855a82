#include <algorithm>

#include "tessera/base/error.h"
#include "tessera/base/text.h"
#include "tessera/data/sound.h"
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

bool is_of(const SampleKind& kind, std::string_view ending) {
  return ending.find('.') == std::string_view::npos && kind.has_ending("sample." + std::string(ending));
}

// By its header; 0 where that cannot be read, which whoever decodes it will tell.
double seconds_of(std::span<const std::byte> sound, const std::string& name) {
  try {
    return EncodedSound(sound, name).info().seconds();
  } catch (const Error&) {
    return 0;
  }
}

// The samples of one shard, whose members of one key lie side by side.
std::vector<ShardEntry> index_shard(const MappedFile& shard, int32_t number, const SampleKind& kind) {
  const std::string path = shard.path().string();
  std::vector<ShardEntry> entries;
  std::string key;
  ShardEntry entry;
  const auto close = [&] {
    if (entry.bytes == 0) return;
    require(entry.label >= 0 || entry.text_offset > 0, ErrorCode::invalid_file,
            "{}: '{}' has no class{}: {}.cls is missing beside it", path, key,
            kind.transcribed ? " and no transcript" : "", key);
    entries.push_back(entry);
  };
  for (const TarMember& member : parse_tar(shard.bytes(), path)) {
    const SampleName name = sample_name(member.name);
    if (name.key != key) {
      close();
      key = name.key;
      entry = {.shard = number, .label = -1};
    }
    const std::string full_name = path + ": " + member.name;
    if (name.ending == "cls") {
      entry.label = parse_label({reinterpret_cast<const char*>(shard.bytes().data()) + member.offset,
                                 std::min<uint64_t>(member.bytes, 16)},
                                full_name);
    } else if (kind.transcribed && name.ending == "txt") {
      require(member.bytes <= kLargestTranscript, ErrorCode::invalid_file,
              "{}: a transcript of {} bytes, more than {}", full_name, member.bytes, kLargestTranscript);
      entry.text_offset = static_cast<int64_t>(member.offset);
      entry.text_bytes = static_cast<int64_t>(member.bytes);
    } else if (is_of(kind, name.ending)) {
      require(entry.bytes == 0 && member.bytes > 0 && member.bytes <= kLargestSample, ErrorCode::invalid_file,
              "{}: is empty, too large, or the second of its key", full_name);
      entry.offset = static_cast<int64_t>(member.offset);
      entry.bytes = static_cast<int64_t>(member.bytes);
      if (&kind == &sound_samples())
        entry.seconds = seconds_of(shard.bytes().subspan(member.offset, member.bytes), full_name);
    }
  }
  close();
  return entries;
}

}  // namespace

bool is_tar_shard(const std::filesystem::path& file) {
  return file.extension() == ".tar";
}

const SampleKind* tar_sample_kind(const std::filesystem::path& file) {
  const MappedFile archive(file);
  for (const TarMember& member : parse_tar(archive.bytes(), file.string())) {
    for (const SampleKind* kind : {&sound_samples(), &image_samples()})
      if (is_of(*kind, sample_name(member.name).ending)) return kind;
  }
  return nullptr;
}

std::shared_ptr<const EncodedSamples> open_tar_samples(const std::filesystem::path& folder,
                                                       const SampleKind& kind, const SplitOptions& options) {
  const auto index = [&](const MappedFile& shard, int32_t number) {
    return index_shard(shard, number, kind);
  };
  return open_shards(folder, options,
                     {.name = "tar shards",
                      .naming = "files ending in .tar",
                      .plural = kind.plural,
                      .is_shard = is_tar_shard,
                      .reading = kind.transcribed ? kind.plural + "\n" : "",
                      .index = index});
}

std::shared_ptr<const EncodedSamples> open_tar_shards(const std::filesystem::path& folder,
                                                      const SplitOptions& options) {
  return open_tar_samples(folder, image_samples(), options);
}

}  // namespace tessera::data
