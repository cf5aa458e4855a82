// What the subcommands of `tessera data` for images work on.
#pragma once

#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "tessera/data/annotated.h"

namespace tessera::cli {

// A part of a folder of images: "train", "test", or "all" where it is not split.
struct DataPart {
  std::string name;
  std::shared_ptr<const data::EncodedSamples> samples;
  std::filesystem::path folder;
  std::shared_ptr<const data::AnnotatedSamples> annotated = nullptr;  // the same, where they have annotations
};
// The decoder of the bytes of a sample; an image that is not of its annotations' size is broken.
data::EncodedImage open_image(const DataPart& part, int64_t index, std::span<const std::byte> bytes);
// All parts of a folder of images, tar shards, TFRecord files, or of COCO's or VOC's annotations, which its
// files tell apart. Broken annotations are left out.
std::vector<DataPart> open_data_parts(const std::filesystem::path& folder);

}  // namespace tessera::cli
