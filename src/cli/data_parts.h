// What the subcommands of `tessera data` for images work on.
#pragma once

#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "tessera/data/encoded.h"

namespace tessera::cli {

// A part of a folder of images: "train", "test", or "all" where it is not split.
struct DataPart {
  std::string name;
  std::shared_ptr<const data::EncodedSamples> samples;
  std::filesystem::path folder;
};
// All parts of a folder of images, tar shards or TFRecord files, which its files tell apart.
std::vector<DataPart> open_data_parts(const std::filesystem::path& folder);

}  // namespace tessera::cli
