#include <utility>

#include "tessera/base/error.h"
#include "tessera/base/file.h"
#include "tessera/data/annotated.h"

#include "data/sample_files.h"

namespace tessera::data {

namespace fs = std::filesystem;

RunLengthMask mask_of(const AnnotatedImage& image, const AnnotatedObject& object) {
  if (!object.outlines.empty()) return fill_outlines(object.outlines, image.height, image.width, image.file);
  RunLengthMask mask{.height = image.height, .width = image.width, .runs = object.runs};
  if (mask.runs.empty()) mask.runs = {static_cast<uint32_t>(image.height * image.width)};
  return mask;
}

AnnotatedSamples::AnnotatedSamples(const fs::path& folder, Annotations annotations)
    : annotations_(std::move(annotations)) {
  require(!annotations_.images.empty(), ErrorCode::invalid_file, "{}: no image has annotations",
          folder.string());
  std::error_code error;
  folder_ = fs::canonical(folder, error);
  require(!error && fs::is_directory(folder_, error), ErrorCode::io, "{}: no such folder", folder.string());
}

std::vector<std::byte> AnnotatedSamples::bytes(int64_t index) const {
  const fs::path path = folder_ / image(index).file;
  try {
    check_lies_below(path, folder_);
  } catch (const fs::filesystem_error& error) {
    fail(ErrorCode::io, "{}: {}", path.string(), error.code().message());
  }
  return read_file(path, kLargestSample);
}

EncodedImage AnnotatedSamples::open(int64_t index, std::span<const std::byte> bytes,
                                    const ImageLimits& limits) const {
  EncodedImage encoded(bytes, name(index), limits);
  const AnnotatedImage& own = image(index);
  require(encoded.info().height == own.height && encoded.info().width == own.width, ErrorCode::invalid_file,
          "{}: has {}x{} pixels, its annotations are of {}x{}", name(index), encoded.info().width,
          encoded.info().height, own.width, own.height);
  return encoded;
}

Registry<AnnotatedSetDescription>& annotated_sets() {
  static Registry<AnnotatedSetDescription> sets("kind of annotated images");
  return sets;
}

const AnnotatedSetDescription* annotated_kind(const fs::path& folder) {
  for (const AnnotatedSetDescription* kind : annotated_sets().all())
    if (kind->fits(folder)) return kind;
  return nullptr;
}

}  // namespace tessera::data
