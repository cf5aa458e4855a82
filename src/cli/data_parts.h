// What the subcommands of `tessera data` for images work on.
#pragma once

#include <filesystem>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "tessera/data/annotated.h"

namespace tessera::cli {

// A part of a folder of images, or of sounds: "train", "test", or "all" where it is not split.
struct DataPart {
  std::string name;
  std::shared_ptr<const data::EncodedSamples> samples;
  std::filesystem::path folder;
  std::shared_ptr<const data::AnnotatedSamples> annotated = nullptr;  // the same, where they have annotations
  bool sounds = false;                                                // and not images

  const char* plural() const { return sounds ? "sounds" : "images"; }
  // The name of a sample's class; "" where it has none.
  std::string class_of(int64_t index) const;
};
// The decoder of the bytes of a sample; an image that is not of its annotations' size is broken.
data::EncodedImage open_image(const DataPart& part, int64_t index, std::span<const std::byte> bytes);
// Looks at all samples from several threads; those for which that throws Error(io) or Error(invalid_file),
// with its message. Throws Interrupted.
std::map<int64_t, std::string> visit_samples(const DataPart& part,
                                             const std::function<void(int64_t index)>& look_at);
// All parts of a folder of images, tar shards, TFRecord files, of COCO's or VOC's annotations, or of
// sounds in folders or shards, which its files tell apart. Broken annotations are left out.
std::vector<DataPart> open_data_parts(const std::filesystem::path& folder);

}  // namespace tessera::cli
