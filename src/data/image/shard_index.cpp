#include "data/image/shard_index.h"

#include <algorithm>
#include <array>
#include <system_error>

#include <fmt/format.h>

#include "tessera/base/error.h"
#include "tessera/base/log.h"
#include "tessera/base/progress.h"
#include "tessera/data/safetensors.h"

namespace tessera::data {
namespace {

namespace fs = std::filesystem;

constexpr const char* kIndexName = "index.safetensors";
constexpr double kLongestSound = 1e6;  // seconds

// A shard's name, size and time of change: an index is of exactly these, read in this way.
std::string fingerprint(const std::vector<MappedFile>& shards, const std::string& reading) {
  std::string text = reading;
  for (const MappedFile& shard : shards) {
    std::error_code ignored;
    const auto time = fs::last_write_time(shard.path(), ignored).time_since_epoch().count();
    text += fmt::format("{} {} {}\n", shard.path().filename().string(), shard.size(), time);
  }
  return text;
}

std::vector<ShardEntry> from_tensors(const SafetensorsFile& file, const std::vector<MappedFile>& shards) {
  const Tensor shard = file.read("shard");
  const Tensor label = file.read("label");
  const Tensor offset = file.read("offset");
  const Tensor bytes = file.read("bytes");
  const Tensor text_offset = file.read("text_offset");
  const Tensor text_bytes = file.read("text_bytes");
  const Tensor seconds = file.read("seconds");
  std::vector<ShardEntry> entries(static_cast<size_t>(shard.size()));
  for (size_t i = 0; i < entries.size(); ++i) {
    entries[i] = {.shard = shard.data<int32_t>()[i],
                  .label = label.data<int32_t>()[i],
                  .offset = offset.data<int64_t>()[i],
                  .bytes = bytes.data<int64_t>()[i],
                  .text_offset = text_offset.data<int64_t>()[i],
                  .text_bytes = text_bytes.data<int64_t>()[i],
                  .seconds = seconds.data<double>()[i]};
    const ShardEntry& entry = entries[i];
    require(entry.shard >= 0 && entry.shard < std::ssize(shards) && entry.label >= -1 &&
                entry.label < kMostClasses && entry.bytes > 0 && entry.seconds >= 0 &&
                entry.seconds <= kLongestSound,
            ErrorCode::invalid_file, "entry {} is out of range", i);
    const auto size = static_cast<int64_t>(shards[static_cast<size_t>(entry.shard)].size());
    const auto lies_inside = [&](int64_t place, int64_t count) {
      return place >= 0 && count >= 0 && count <= size && place <= size - count;
    };
    require(lies_inside(entry.offset, entry.bytes) && lies_inside(entry.text_offset, entry.text_bytes),
            ErrorCode::invalid_file, "entry {} lies outside of its shard", i);
  }
  return entries;
}

// What is kept beside the shards, if it is of them; nothing otherwise.
std::vector<ShardEntry> kept_index(const fs::path& path, const std::vector<MappedFile>& shards,
                                   const std::string& reading) {
  std::error_code ignored;
  if (!fs::exists(path, ignored)) return {};
  try {
    const SafetensorsFile file = SafetensorsFile::open(path);
    const auto found = file.metadata().find("shards");
    if (found == file.metadata().end() || found->second != fingerprint(shards, reading)) return {};
    return from_tensors(file, shards);
  } catch (const Error& error) {
    log_info("{} is made anew: {}", path.string(), error.what());
    return {};
  }
}

void keep_index(const fs::path& path, const std::vector<MappedFile>& shards,
                const std::vector<ShardEntry>& entries, const std::string& reading) {
  const Shape shape{std::ssize(entries)};
  std::map<std::string, Tensor> tensors{
      {"shard", Tensor(DataType::int32, shape)},       {"label", Tensor(DataType::int32, shape)},
      {"offset", Tensor(DataType::int64, shape)},      {"bytes", Tensor(DataType::int64, shape)},
      {"text_offset", Tensor(DataType::int64, shape)}, {"text_bytes", Tensor(DataType::int64, shape)},
      {"seconds", Tensor(DataType::fp64, shape)}};
  for (size_t i = 0; i < entries.size(); ++i) {
    tensors["shard"].data<int32_t>()[i] = entries[i].shard;
    tensors["label"].data<int32_t>()[i] = entries[i].label;
    tensors["offset"].data<int64_t>()[i] = entries[i].offset;
    tensors["bytes"].data<int64_t>()[i] = entries[i].bytes;
    tensors["text_offset"].data<int64_t>()[i] = entries[i].text_offset;
    tensors["text_bytes"].data<int64_t>()[i] = entries[i].text_bytes;
    tensors["seconds"].data<double>()[i] = entries[i].seconds;
  }
  try {
    write_safetensors(path, tensors, {{"shards", fingerprint(shards, reading)}});
  } catch (const Error& error) {
    log_info("the index of the shards is not kept: {}", error.what());
  }
}

std::vector<std::string> read_class_names(const fs::path& folder, const std::vector<ShardEntry>& entries) {
  int32_t classes = 0;
  for (const ShardEntry& entry : entries) classes = std::max(classes, entry.label + 1);
  if (const auto listed = read_class_list(folder)) {
    require(std::ssize(*listed) >= classes, ErrorCode::invalid_file,
            "{}: names {} classes, the shards have {}", (folder / kClassesName).string(), listed->size(),
            classes);
    return *listed;
  }
  return named_classes(classes);
}

class ShardSamples : public EncodedSamples {
 public:
  ShardSamples(std::vector<MappedFile> shards, std::vector<ShardEntry> entries,
               std::vector<std::string> classes)
      : shards_(std::move(shards)), entries_(std::move(entries)), classes_(std::move(classes)) {}

  int64_t size() const override { return std::ssize(entries_); }
  int32_t label(int64_t index) const override { return entry(index).label; }
  const std::vector<std::string>& class_names() const override { return classes_; }
  std::string name(int64_t index) const override {
    const ShardEntry& own = entry(index);
    return fmt::format("{}, byte {}", shards_[static_cast<size_t>(own.shard)].path().string(), own.offset);
  }
  std::vector<std::byte> bytes(int64_t index) const override {
    const ShardEntry& own = entry(index);
    return copy(own.shard, own.offset, own.bytes);
  }
  std::vector<std::byte> first_bytes(int64_t index, int64_t most) const override {
    const ShardEntry& own = entry(index);
    return copy(own.shard, own.offset, std::min(own.bytes, most));
  }
  std::optional<std::string> transcript(int64_t index) const override {
    const ShardEntry& own = entry(index);
    if (own.text_offset == 0) return std::nullopt;
    const std::vector<std::byte> text = copy(own.shard, own.text_offset, own.text_bytes);
    return trimmed({reinterpret_cast<const char*>(text.data()), text.size()});
  }
  std::optional<double> seconds(int64_t index) const override {
    const double seconds = entry(index).seconds;
    return seconds > 0 ? std::optional(seconds) : std::nullopt;
  }

 private:
  std::vector<std::byte> copy(int32_t shard, int64_t offset, int64_t count) const {
    std::vector<std::byte> bytes(static_cast<size_t>(count));
    shards_[static_cast<size_t>(shard)].copy(static_cast<uint64_t>(offset), bytes);
    return bytes;
  }
  const ShardEntry& entry(int64_t index) const { return entries_[static_cast<size_t>(index)]; }

  std::vector<MappedFile> shards_;
  std::vector<ShardEntry> entries_;
  std::vector<std::string> classes_;
};

std::vector<ShardEntry> make_index(const std::vector<MappedFile>& shards, const ShardFormat& format) {
  const LongWork reading;
  std::vector<ShardEntry> entries;
  for (size_t i = 0; i < shards.size(); ++i) {
    const std::vector<ShardEntry> added = format.index(shards[i], static_cast<int32_t>(i));
    entries.insert(entries.end(), added.begin(), added.end());
  }
  return entries;
}

// False where the folder cannot be read.
bool holds(const fs::path& folder, bool (*is_shard)(const fs::path&)) {
  try {
    return !files_in(folder, is_shard).empty();
  } catch (const fs::filesystem_error&) {
    return false;
  }
}

std::shared_ptr<const EncodedSamples> open_in(const SplitFolder& split, const SplitOptions& options,
                                              const ShardFormat& format) {
  const std::vector<fs::path> all = files_in(split.path, format.is_shard);
  require(!all.empty(), ErrorCode::invalid_file, "{}: holds no {}; expected {}", split.path.string(),
          format.name, format.naming);
  std::vector<fs::path> own;
  if (split.whole && format.splits_by_name) own = of_split(all, options.split);
  const bool is_part = !own.empty();
  if (!is_part) own = all;
  const char* part = options.split == Split::train ? "train-" : "test-";
  const fs::path index = split.path / ((is_part ? part : "") + std::string(kIndexName));
  std::vector<MappedFile> shards(own.begin(), own.end());
  std::vector<ShardEntry> entries = kept_index(index, shards, format.reading);
  if (entries.empty()) {
    entries = make_index(shards, format);
    require(!entries.empty(), ErrorCode::invalid_file, "{}: the {} hold no {}", split.path.string(),
            format.name, format.plural);
    const auto without_class = std::ranges::count(entries, -1, &ShardEntry::label);
    require(without_class == 0 || without_class == std::ssize(entries), ErrorCode::invalid_file,
            "{}: {} of {} {} have no class, and the others have one", split.path.string(), without_class,
            entries.size(), format.plural);
    keep_index(index, shards, entries, format.reading);
  }
  std::vector<std::string> classes = read_class_names(split.path, entries);
  if (split.whole && !is_part) entries = part_of(entries, options, split.path.string());
  return std::make_shared<ShardSamples>(std::move(shards), std::move(entries), std::move(classes));
}

}  // namespace

bool has_part(const fs::path& folder, Split split) {
  std::error_code ignored;
  const auto is_there = [&](const char* name) { return fs::is_directory(folder / name, ignored); };
  if (split == Split::train ? is_there("train") : std::ranges::any_of(kTestFolders, is_there)) return true;
  return std::ranges::any_of(std::array{is_tfrecord_shard, is_sound_list}, [&](auto is_wanted) {
    return holds(folder, is_wanted) && !of_split(files_in(folder, is_wanted), split).empty();
  });
}

std::shared_ptr<const EncodedSamples> open_samples(const fs::path& folder, const SplitOptions& options) {
  const fs::path own = split_folder(folder, options.split).path;
  if (holds(own, is_tar_shard)) return open_tar_shards(folder, options);
  if (holds(own, is_tfrecord_shard)) return open_tfrecords(folder, options);
  return open_image_folder(folder, options);
}

std::shared_ptr<const EncodedSamples> open_shards(const fs::path& folder, const SplitOptions& options,
                                                  const ShardFormat& format) {
  const SplitFolder split = split_folder(folder, options.split);
  try {
    return open_in(split, options, format);
  } catch (const fs::filesystem_error& error) {
    fail(ErrorCode::io, "{}: {}", error.path1().string(), error.code().message());
  }
}

}  // namespace tessera::data
