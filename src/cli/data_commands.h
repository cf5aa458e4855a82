// The subcommands of `tessera data`: each registers itself in its own file.
#pragma once

#include <filesystem>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "tessera/data/encoded.h"

#include "cli/commands.h"

namespace tessera::cli {

Registry<CommandDescription>& data_commands();

struct DataCommandRegistration {
  explicit DataCommandRegistration(CommandDescription description) {
    data_commands().add(std::move(description));
  }
};

// A part of a folder of images: "train", "test", or "all" where it is not split.
struct DataPart {
  std::string name;
  std::shared_ptr<const data::EncodedSamples> samples;
  std::filesystem::path folder;
};
// All parts of an image folder or of a folder of tar shards, which its files tell apart.
std::vector<DataPart> open_data_parts(const std::filesystem::path& folder);

}  // namespace tessera::cli
