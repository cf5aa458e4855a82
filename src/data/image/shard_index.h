// Images and sounds that lie in larger files: where each begins is found once, and kept beside them.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "tessera/base/file.h"
#include "tessera/data/encoded.h"

#include "data/sample_files.h"

namespace tessera::data {

inline constexpr int32_t kMostClasses = 1'000'000;  // as of data.classes

struct ShardEntry {
  int32_t shard = 0;
  int32_t label = 0;   // -1: of no class
  int64_t offset = 0;  // of the sample, in its shard
  int64_t bytes = 0;
  int64_t text_offset = 0;  // of its transcript; 0: it has none
  int64_t text_bytes = 0;
  double seconds = 0;  // that a sound takes; 0: not known
};

// Larger files of one kind.
struct ShardFormat {
  std::string name;    // as messages have it: "tar shards"
  std::string naming;  // how their files are called, for whoever has none
  std::string plural = "images";
  bool (*is_shard)(const std::filesystem::path& file) = nullptr;
  // Whether names that begin with "train", and with "val" or "test", tell the splits of one folder apart.
  bool splits_by_name = false;
  // What an index depends on beside the files; empty: nothing.
  std::string reading;
  // The samples of one shard, which is number `shard`. Throws Error(invalid_file).
  std::function<std::vector<ShardEntry>(const MappedFile& file, int32_t shard)> index;
};

bool is_tar_shard(const std::filesystem::path& file);
bool is_tfrecord_shard(const std::filesystem::path& file);

// The kind of the first image or sound in the archive; null: there is none.
const SampleKind* tar_sample_kind(const std::filesystem::path& file);

// As open_tar_shards(), of any kind.
std::shared_ptr<const EncodedSamples> open_tar_samples(const std::filesystem::path& folder,
                                                       const SampleKind& kind, const SplitOptions& options);

// As open_tar_shards() says of tar.
std::shared_ptr<const EncodedSamples> open_shards(const std::filesystem::path& folder,
                                                  const SplitOptions& options, const ShardFormat& format);

}  // namespace tessera::data
