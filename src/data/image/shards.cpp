#include "tessera/data/shards.h"

#include <algorithm>
#include <fstream>
#include <limits>
#include <optional>
#include <system_error>

#include <fmt/format.h>
#include <nlohmann/json.hpp>
#include <zlib.h>

#include "tessera/base/error.h"
#include "tessera/base/file.h"
#include "tessera/data/tar.h"

namespace tessera::data {
namespace {

namespace fs = std::filesystem;

constexpr const char* kManifestName = "manifest.json";
constexpr uint64_t kLargestManifest = 256 << 20;

uint32_t checksum_of(uint32_t before, std::span<const std::byte> bytes) {
  if (bytes.empty()) return before;  // zlib takes no memory at all for the beginning of a new sum
  return static_cast<uint32_t>(
      ::crc32_z(before, reinterpret_cast<const unsigned char*>(bytes.data()), bytes.size()));
}

// What shards are made of: with others they must not be gone on with.
nlohmann::json description_of(const EncodedSamples& samples, int64_t shard_bytes) {
  uint32_t names = 0;
  for (int64_t i = 0; i < samples.size(); ++i)
    names = checksum_of(names, as_bytes(fmt::format("{} {}\n", samples.name(i), samples.label(i)) +
                                        samples.transcript(i).value_or("")));
  return {{"samples", samples.size()}, {"names", names}, {"shard_bytes", shard_bytes}};
}

std::string shard_name(size_t number) {
  return fmt::format("shard-{:06}.tar", number);
}

struct Manifest {
  nlohmann::json description;
  std::vector<PackedShard> shards;
};

void write_manifest(const fs::path& path, const Manifest& manifest) {
  nlohmann::json object = manifest.description;
  object["shards"] = nlohmann::json::array();
  for (const PackedShard& shard : manifest.shards) {
    object["shards"].push_back({{"name", shard.name},
                                {"samples", shard.samples},
                                {"bytes", shard.bytes},
                                {"crc32", shard.checksum}});
  }
  write_file(path, object.dump(1) + "\n");
}

// Whole numbers alone: what else JSON may hold there no type of ours takes.
int64_t count_in(const nlohmann::json& shard, const char* key, const fs::path& path, uint64_t most) {
  const nlohmann::json& value = shard.at(key);
  require(value.is_number_unsigned() && value.get<uint64_t>() <= most, ErrorCode::invalid_file,
          "{}: '{}' of a shard is no whole number from 0 to {}", path.string(), key, most);
  return value.get<int64_t>();
}

Manifest read_manifest(const fs::path& path) {
  constexpr uint64_t kMost = std::numeric_limits<int64_t>::max();
  constexpr uint64_t kMostSum = std::numeric_limits<uint32_t>::max();
  Manifest manifest;
  try {
    nlohmann::json object = nlohmann::json::parse(read_text_file(path, kLargestManifest));
    for (const nlohmann::json& shard : object.at("shards")) {
      manifest.shards.push_back(
          {.name = shard.at("name").get<std::string>(),
           .samples = count_in(shard, "samples", path, kMost),
           .bytes = count_in(shard, "bytes", path, kMost),
           .checksum = static_cast<uint32_t>(count_in(shard, "crc32", path, kMostSum))});
      const fs::path name = manifest.shards.back().name;
      require(!name.empty() && name == name.filename() && name != "." && name != "..",
              ErrorCode::invalid_file, "{}: the shard '{}' is no file of this folder", path.string(),
              name.string());
    }
    object.erase("shards");
    manifest.description = std::move(object);
  } catch (const nlohmann::json::exception& error) {
    fail(ErrorCode::invalid_file, "{}: is no list of shards: {}", path.string(), error.what());
  }
  return manifest;
}

// None where there is no such file.
std::optional<int64_t> length_of(const fs::path& path) {
  std::error_code error;
  const uintmax_t size = fs::file_size(path, error);
  return error ? std::nullopt : std::optional(static_cast<int64_t>(size));
}

// By the first bytes of a file, as its decoder is chosen; "" where they are of no kind.
std::string ending_of(std::span<const std::byte> sample) {
  constexpr size_t kFormOfRiff = 8;
  const auto has = [&](size_t place, std::string_view text) {
    const auto own = as_bytes(text);
    return sample.size() >= place + own.size() && std::ranges::equal(own, sample.subspan(place, own.size()));
  };
  if (has(0, "\x89PNG")) return "png";
  if (has(0, "\xff\xd8")) return "jpg";
  if (has(0, "fLaC")) return "flac";
  if (has(0, "OggS")) return "ogg";
  if (has(kFormOfRiff, "WAVE")) return "wav";
  return has(kFormOfRiff, "WEBP") ? "webp" : "";
}

// One shard on its way to its file.
class ShardWriter {
 public:
  ShardWriter(const fs::path& path, std::string unknown_ending)
      : file_(path), unknown_ending_(std::move(unknown_ending)) {
    shard_.name = path.filename().string();
  }

  void add(int64_t number, const EncodedSamples& samples) {
    const std::string key = fmt::format("{:08}", number);
    const std::vector<std::byte> bytes = samples.bytes(number);
    const std::string ending = ending_of(bytes);
    add_member(key + "." + (ending.empty() ? unknown_ending_ : ending), bytes);
    if (const int32_t label = samples.label(number); label >= 0)
      add_member(key + ".cls", as_bytes(std::to_string(label)));
    if (const auto transcript = samples.transcript(number)) add_member(key + ".txt", as_bytes(*transcript));
    ++shard_.samples;
  }
  int64_t bytes() const { return shard_.bytes; }
  PackedShard commit() {
    write(std::vector<std::byte>(kTarEnd));
    file_.commit();
    return shard_;
  }

 private:
  void add_member(const std::string& name, std::span<const std::byte> contents) {
    write(tar_header(name, contents.size()));
    write(contents);
    write(std::vector<std::byte>(tar_padding(contents.size())));
  }
  void write(std::span<const std::byte> bytes) {
    file_.write(bytes);
    shard_.checksum = checksum_of(shard_.checksum, bytes);
    shard_.bytes += std::ssize(bytes);
  }

  AtomicFile file_;
  std::string unknown_ending_;
  PackedShard shard_;
};

// Shards that a run before this one finished, as far as they are as it left them.
std::vector<PackedShard> kept_shards(const fs::path& folder, const EncodedSamples& samples,
                                     const nlohmann::json& description) {
  const fs::path path = folder / kManifestName;
  std::error_code ignored;
  if (!fs::exists(path, ignored)) return {};
  const Manifest manifest = read_manifest(path);
  require(manifest.description == description, ErrorCode::invalid_file,
          "{}: was begun with other samples or another size of shards; remove the folder, or name another",
          path.string());
  std::vector<PackedShard> kept;
  int64_t left = samples.size();
  for (const PackedShard& shard : manifest.shards) {
    const bool next = shard.name == shard_name(kept.size()) && shard.samples > 0 && shard.samples <= left;
    if (!next || length_of(folder / shard.name) != shard.bytes) break;
    left -= shard.samples;
    kept.push_back(shard);
  }
  return kept;
}

// Without waiting for the disk, which for thousands of files would take minutes.
void write_plainly(const fs::path& path, std::span<const std::byte> bytes) {
  std::ofstream file(path, std::ios::binary | std::ios::trunc);
  file.write(reinterpret_cast<const char*>(bytes.data()), std::ssize(bytes));
  file.close();
  require(file.good(), ErrorCode::io, "{}: cannot be written", path.string());
}

std::string folder_name(const std::vector<std::string>& classes, int64_t label) {
  const auto width = std::to_string(classes.size() - 1).size();
  std::string name = fmt::format("{:0{}}_{}", label, width, class_name(classes, label));
  for (char& c : name) {
    const bool plain = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '-';
    if (!plain) c = '_';
  }
  return name;
}

}  // namespace

PackResult pack_shards(const EncodedSamples& samples, const fs::path& folder, const PackOptions& options) {
  require(options.shard_bytes > 0, ErrorCode::invalid_argument, "shards of {} bytes, expected more than 0",
          options.shard_bytes);
  make_folder(folder);
  Manifest manifest{.description = description_of(samples, options.shard_bytes), .shards = {}};
  PackResult result{.shards = kept_shards(folder, samples, manifest.description)};
  result.kept = std::ssize(result.shards);
  int64_t next = 0;
  for (const PackedShard& shard : result.shards) next += shard.samples;
  std::string classes;
  for (const std::string& name : samples.class_names()) classes += name + "\n";
  write_file(folder / "classes.txt", classes);
  while (next < samples.size()) {
    if (options.stop != nullptr && options.stop->load()) return result;
    ShardWriter writer(folder / shard_name(result.shards.size()), options.unknown_ending);
    for (; next < samples.size() && writer.bytes() < options.shard_bytes; ++next) writer.add(next, samples);
    result.shards.push_back(writer.commit());
    manifest.shards = result.shards;
    write_manifest(folder / kManifestName, manifest);
    if (options.on_shard) options.on_shard(result.shards.back());
  }
  result.completed = true;
  return result;
}

std::vector<std::string> check_shards(const fs::path& folder) {
  const fs::path path = folder / kManifestName;
  std::error_code ignored;
  if (!fs::exists(path, ignored)) return {};
  std::vector<std::string> faults;
  for (const PackedShard& shard : read_manifest(path).shards) {
    const fs::path file = folder / shard.name;
    const std::optional<int64_t> length = length_of(file);
    if (!length.has_value()) {
      faults.push_back(file.string() + ": is missing");
    } else if (*length != shard.bytes) {
      faults.push_back(fmt::format("{}: has {} bytes, {} were written", file.string(), *length, shard.bytes));
    } else if (checksum_of(0, MappedFile(file).bytes()) != shard.checksum) {
      faults.push_back(file.string() + ": its checksum is not that of what was written");
    }
  }
  return faults;
}

int64_t export_image_folder(const Dataset& dataset, const fs::path& folder, const ExportOptions& options) {
  require(options.format != ImageFormat::webp, ErrorCode::invalid_argument,
          "images are written as JPEG or PNG, not as {}", format_name(options.format));
  const int64_t all = dataset.size();
  const int64_t count = options.examples > 0 ? std::min(options.examples, all) : all;
  for (int64_t label = 0; label < dataset.class_count(); ++label)
    make_folder(folder / folder_name(dataset.class_names(), label));
  std::vector<uint8_t> pixels(static_cast<size_t>(element_count(dataset.image_shape())));
  for (int64_t i = 0; i < count; ++i) {
    int32_t label = 0;
    dataset.read(i, pixels, label);
    const bool jpeg = options.format == ImageFormat::jpeg;
    const fs::path path =
        folder / folder_name(dataset.class_names(), label) / fmt::format("{:06}.{}", i, jpeg ? "jpg" : "png");
    write_plainly(path, jpeg ? encode_jpeg(pixels, dataset.image_shape(), options.quality)
                             : encode_png(pixels, dataset.image_shape()));
  }
  return count;
}

}  // namespace tessera::data
