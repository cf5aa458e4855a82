#include <algorithm>
#include <system_error>

#include <fmt/format.h>
#include <sys/stat.h>

#include "tessera/base/error.h"
#include "tessera/base/file.h"
#include "tessera/base/log.h"
#include "tessera/base/text.h"
#include "tessera/data/safetensors.h"
#include "tessera/data/tar.h"

#include "data/image/sample_files.h"

namespace tessera::data {
namespace {

namespace fs = std::filesystem;

constexpr const char* kIndexName = "index.safetensors";
constexpr const char* kClassesName = "classes.txt";
constexpr uint64_t kLargestClassList = 64 << 20;
constexpr int32_t kMostClasses = 1'000'000;  // as of data.classes

struct Entry {
  int32_t shard = 0;
  int32_t label = 0;
  int64_t offset = 0;  // of the image, in its shard
  int64_t bytes = 0;
};

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
std::vector<Entry> index_shard(const MappedFile& shard, int32_t number) {
  const std::string path = shard.path().string();
  std::vector<Entry> entries;
  std::string key;
  Entry entry;
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
               has_image_ending("image." + std::string(name.ending))) {
      require(entry.bytes == 0 && member.bytes > 0 && member.bytes <= kLargestEncodedImage,
              ErrorCode::invalid_file, "{}: is empty, too large, or the second image of its key", full_name);
      entry.offset = static_cast<int64_t>(member.offset);
      entry.bytes = static_cast<int64_t>(member.bytes);
    }
  }
  close();
  return entries;
}

// A shard's name, size and time of change: an index is of exactly these.
std::string fingerprint(const std::vector<MappedFile>& shards) {
  std::string text;
  for (const MappedFile& shard : shards) {
    std::error_code ignored;
    const auto time = fs::last_write_time(shard.path(), ignored).time_since_epoch().count();
    text += fmt::format("{} {} {}\n", shard.path().filename().string(), shard.size(), time);
  }
  return text;
}

std::vector<Entry> from_tensors(const SafetensorsFile& file, const std::vector<MappedFile>& shards) {
  const Tensor shard = file.read("shard");
  const Tensor label = file.read("label");
  const Tensor offset = file.read("offset");
  const Tensor bytes = file.read("bytes");
  std::vector<Entry> entries(static_cast<size_t>(shard.size()));
  for (size_t i = 0; i < entries.size(); ++i) {
    entries[i] = {.shard = shard.data<int32_t>()[i],
                  .label = label.data<int32_t>()[i],
                  .offset = offset.data<int64_t>()[i],
                  .bytes = bytes.data<int64_t>()[i]};
    const Entry& entry = entries[i];
    require(entry.shard >= 0 && entry.shard < std::ssize(shards) && entry.label >= 0 &&
                entry.label < kMostClasses && entry.offset >= 0 && entry.bytes > 0,
            ErrorCode::invalid_file, "entry {} is out of range", i);
    const uint64_t size = shards[static_cast<size_t>(entry.shard)].size();
    require(static_cast<uint64_t>(entry.bytes) <= size &&
                static_cast<uint64_t>(entry.offset) <= size - static_cast<uint64_t>(entry.bytes),
            ErrorCode::invalid_file, "entry {} lies outside of its shard", i);
  }
  return entries;
}

// What is kept beside the shards, if it is of them; nothing otherwise.
std::vector<Entry> kept_index(const fs::path& path, const std::vector<MappedFile>& shards) {
  std::error_code ignored;
  if (!fs::exists(path, ignored)) return {};
  try {
    const SafetensorsFile file = SafetensorsFile::open(path);
    const auto found = file.metadata().find("shards");
    if (found == file.metadata().end() || found->second != fingerprint(shards)) return {};
    return from_tensors(file, shards);
  } catch (const Error& error) {
    log_info("{} is made anew: {}", path.string(), error.what());
    return {};
  }
}

void keep_index(const fs::path& path, const std::vector<MappedFile>& shards,
                const std::vector<Entry>& entries) {
  const Shape shape{std::ssize(entries)};
  std::map<std::string, Tensor> tensors{{"shard", Tensor(DataType::int32, shape)},
                                        {"label", Tensor(DataType::int32, shape)},
                                        {"offset", Tensor(DataType::int64, shape)},
                                        {"bytes", Tensor(DataType::int64, shape)}};
  for (size_t i = 0; i < entries.size(); ++i) {
    tensors["shard"].data<int32_t>()[i] = entries[i].shard;
    tensors["label"].data<int32_t>()[i] = entries[i].label;
    tensors["offset"].data<int64_t>()[i] = entries[i].offset;
    tensors["bytes"].data<int64_t>()[i] = entries[i].bytes;
  }
  try {
    write_safetensors(path, tensors, {{"shards", fingerprint(shards)}});
  } catch (const Error& error) {
    log_info("the index of the shards is not kept: {}", error.what());
  }
}

std::vector<std::string> read_class_names(const fs::path& folder, const std::vector<Entry>& entries) {
  int32_t classes = 0;
  for (const Entry& entry : entries) classes = std::max(classes, entry.label + 1);
  std::vector<std::string> names;
  std::error_code ignored;
  if (const fs::path path = folder / kClassesName; fs::exists(path, ignored)) {
    std::string text = read_text_file(path, kLargestClassList);
    for (size_t begin = 0; begin < text.size();) {
      const size_t end = std::min(text.find('\n', begin), text.size());
      names.push_back(text.substr(begin, end - begin));
      begin = end + 1;
    }
    require(std::ssize(names) >= classes, ErrorCode::invalid_file, "{}: names {} classes, the shards have {}",
            path.string(), names.size(), classes);
    return names;
  }
  for (int32_t i = 0; i < classes; ++i) names.push_back(std::to_string(i));
  return names;
}

class TarSamples : public EncodedSamples {
 public:
  TarSamples(std::vector<MappedFile> shards, std::vector<Entry> entries, std::vector<std::string> classes)
      : shards_(std::move(shards)), entries_(std::move(entries)), classes_(std::move(classes)) {}

  int64_t size() const override { return std::ssize(entries_); }
  int32_t label(int64_t index) const override { return entry(index).label; }
  const std::vector<std::string>& class_names() const override { return classes_; }
  std::string name(int64_t index) const override {
    const Entry& own = entry(index);
    return fmt::format("{}, byte {}", shards_[static_cast<size_t>(own.shard)].path().string(), own.offset);
  }
  std::vector<std::byte> bytes(int64_t index) const override {
    const Entry& own = entry(index);
    std::vector<std::byte> bytes(static_cast<size_t>(own.bytes));
    shards_[static_cast<size_t>(own.shard)].copy(static_cast<uint64_t>(own.offset), bytes);
    return bytes;
  }

 private:
  const Entry& entry(int64_t index) const { return entries_[static_cast<size_t>(index)]; }

  std::vector<MappedFile> shards_;
  std::vector<Entry> entries_;
  std::vector<std::string> classes_;
};

std::vector<MappedFile> open_shards(const fs::path& folder) {
  std::vector<fs::path> paths;
  for (const fs::directory_entry& entry : fs::directory_iterator(folder)) {
    if (entry.path().extension() == ".tar" && entry.is_regular_file()) paths.push_back(entry.path());
  }
  require(!paths.empty(), ErrorCode::invalid_file, "{}: holds no tar shards; expected files ending in .tar",
          folder.string());
  std::ranges::sort(paths);
  return {std::make_move_iterator(paths.begin()), std::make_move_iterator(paths.end())};
}

}  // namespace

std::shared_ptr<const EncodedSamples> open_tar_shards(const fs::path& folder, const SplitOptions& options) {
  const SplitFolder split = split_folder(folder, options.split);
  try {
    std::vector<MappedFile> shards = open_shards(split.path);
    std::vector<Entry> entries = kept_index(split.path / kIndexName, shards);
    if (entries.empty()) {
      for (size_t i = 0; i < shards.size(); ++i) {
        const std::vector<Entry> added = index_shard(shards[i], static_cast<int32_t>(i));
        entries.insert(entries.end(), added.begin(), added.end());
      }
      require(!entries.empty(), ErrorCode::invalid_file, "{}: the tar shards hold no images",
              split.path.string());
      keep_index(split.path / kIndexName, shards, entries);
    }
    std::vector<std::string> classes = read_class_names(split.path, entries);
    if (split.whole) entries = part_of(entries, options, split.path.string());
    return std::make_shared<TarSamples>(std::move(shards), std::move(entries), std::move(classes));
  } catch (const fs::filesystem_error& error) {
    fail(ErrorCode::io, "{}: {}", error.path1().string(), error.code().message());
  }
}

}  // namespace tessera::data
