#include <algorithm>

#include <fmt/format.h>

#include "tessera/base/error.h"
#include "tessera/base/text.h"
#include "tessera/data/tfrecord.h"

#include "data/image/shard_index.h"
#include "data/sample_files.h"

namespace tessera::data {
namespace {

// "NAME-00003-of-01024".
bool is_one_of_many(std::string_view name) {
  constexpr std::string_view kOf = "-of-";
  constexpr size_t kDigits = 5;
  const size_t of = name.rfind(kOf);
  if (of == std::string_view::npos || of <= kDigits || name[of - kDigits - 1] != '-') return false;
  const std::string_view number = name.substr(of - kDigits, kDigits);
  const std::string_view count = name.substr(of + kOf.size());
  return count.size() == kDigits && std::ranges::all_of(number, is_digit) &&
         std::ranges::all_of(count, is_digit);
}

const Feature& feature_of(const Features& features, const std::string& key, const std::string& where) {
  const auto found = features.find(key);
  if (found != features.end()) return found->second;
  std::vector<std::string> names;
  for (const auto& [name, feature] : features) names.emplace_back(name);
  fail(ErrorCode::invalid_file, "{}: the example has no feature '{}'{}", where, key,
       did_you_mean(key, names));
}

ShardEntry entry_of(std::span<const std::byte> file, const RecordPlace& place, const TfRecordOptions& options,
                    const std::string& where) {
  const Features features = parse_example(file.subspan(place.offset, place.bytes), where);
  const Feature& image = feature_of(features, options.image, where);
  require(image.bytes.size() == 1 && !image.bytes[0].empty() && image.bytes[0].size() <= kLargestSample,
          ErrorCode::invalid_file, "{}: '{}' is not one image of 1 to {} bytes", where, options.image,
          kLargestSample);
  const Feature& label = feature_of(features, options.label, where);
  require(label.integers.size() == 1 && label.integers[0] >= options.first_label &&
              label.integers[0] - options.first_label < kMostClasses,
          ErrorCode::invalid_file, "{}: '{}' is not the number of one class, {} or more", where,
          options.label, options.first_label);
  return {.label = static_cast<int32_t>(label.integers[0] - options.first_label),
          .offset = image.bytes[0].data() - file.data(),
          .bytes = std::ssize(image.bytes[0])};
}

}  // namespace

bool is_tfrecord_shard(const std::filesystem::path& file) {
  const std::string ending = file.extension().string();
  return ending == ".tfrecord" || ending == ".tfrecords" || is_one_of_many(file.filename().string());
}

std::shared_ptr<const EncodedSamples> open_tfrecords(const std::filesystem::path& folder,
                                                     const SplitOptions& options,
                                                     const TfRecordOptions& record) {
  require(record.first_label >= 0, ErrorCode::invalid_argument, "the first label is {}, expected 0 or more",
          record.first_label);
  const auto index = [&](const MappedFile& file, int32_t shard) {
    const std::string path = file.path().string();
    std::vector<ShardEntry> entries;
    for (const RecordPlace& place : parse_tfrecord(file.bytes(), path)) {
      entries.push_back(
          entry_of(file.bytes(), place, record, fmt::format("{}, byte {}", path, place.offset)));
      entries.back().shard = shard;
    }
    return entries;
  };
  return open_shards(
      folder, options,
      {.name = "TFRecord files",
       .naming = "names that end in .tfrecord or -00000-of-00010",
       .is_shard = is_tfrecord_shard,
       .splits_by_name = true,
       .reading = fmt::format("'{}' '{}' {}\n", record.image, record.label, record.first_label),
       .index = index});
}

}  // namespace tessera::data
