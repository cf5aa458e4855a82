// Writing encoded samples: tar shards of what folders hold, and folders of images of what is in memory.
#pragma once

#include <atomic>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <string>
#include <vector>

#include "tessera/data/encoded.h"

namespace tessera::data {

struct PackedShard {
  std::string name;     // "shard-000000.tar"
  int64_t samples = 0;  // that it holds
  int64_t bytes = 0;
  uint32_t checksum = 0;  // CRC-32 of the file (RFC 1952)
};

struct PackOptions {
  int64_t shard_bytes = int64_t{256} << 20;               // a shard ends with the sample that reaches them
  std::string unknown_ending = "jpg";                     // of samples whose first bytes are of no kind
  const std::atomic<bool>* stop = nullptr;                // after the shard that is being written
  std::function<void(const PackedShard&)> on_shard = {};  // after each
};

struct PackResult {
  std::vector<PackedShard> shards;
  int64_t kept = 0;  // of them, how many were there before
  bool completed = false;
};

// Writes samples in their order as open_tar_shards() and open_sound_shards() read them: shards, classes.txt,
// and manifest.json with a checksum for each shard. A folder that was begun with the same samples and size is
// gone on with: shards that the manifest names and that are as long as it says are kept. Throws Error(io)
// when something cannot be written, Error(invalid_file) when the folder was begun with others.
PackResult pack_shards(const EncodedSamples& samples, const std::filesystem::path& folder,
                       const PackOptions& options = {});

// What is wrong with packed shards, one line each: missing, of another length, or with another checksum.
// Nothing where there is no manifest. Reads every byte.
std::vector<std::string> check_shards(const std::filesystem::path& folder);

struct ExportOptions {
  ImageFormat format = ImageFormat::jpeg;  // or png
  int64_t quality = 95;                    // of JPEG
  int64_t examples = 0;                    // the first so many; 0: all
};

// Writes a data set as an image folder: CLASS/NUMBER.jpg, classes by their names, whose characters beyond
// letters, digits, '-' and '_' become '_', after their numbers. Returns how many were written. Throws
// Error(io) when something cannot be written, Error(invalid_argument) for another format.
int64_t export_image_folder(const Dataset& dataset, const std::filesystem::path& folder,
                            const ExportOptions& options = {});

}  // namespace tessera::data
