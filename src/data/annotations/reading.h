// What readers of annotations share.
#pragma once

#include <algorithm>
#include <string>
#include <utility>

#include "tessera/base/error.h"
#include "tessera/data/annotated.h"

namespace tessera::data {

// Runs `read`; what it says of a broken annotation is kept, where such are left out. Whether it was whole.
template <typename Read>
bool read_annotation(const AnnotationOptions& options, Annotations& annotations, const Read& read) {
  try {
    read();
    return true;
  } catch (const Error& error) {
    const bool is_the_files = error.code() == ErrorCode::invalid_file || error.code() == ErrorCode::io;
    if (!options.leave_out_broken || !is_the_files) throw;
    annotations.broken.emplace_back(error.what());
    return false;
  }
}

// Throws Error(invalid_file) where an image has no pixels or more than the limit.
inline void check_extents(const AnnotatedImage& image, const ImageLimits& limits, const std::string& name) {
  require(image.height > 0 && image.width > 0 && image.height <= limits.pixels / image.width,
          ErrorCode::invalid_file, "{}: an image of {}x{} pixels, expected 1 to {}", name, image.width,
          image.height, limits.pixels);
}

// Adds an object whose box is cut at the image's borders, or counts it where nothing is left of it. Throws
// Error(invalid_file) where the box's right or lower end lies before the other.
inline void add_object(AnnotatedImage& image, AnnotatedObject object, const std::string& name,
                       Annotations& annotations) {
  BoundingBox& box = object.box;
  require(box.left <= box.right && box.top <= box.bottom, ErrorCode::invalid_file,
          "{}: a box from {}, {} to {}, {}", name, box.left, box.top, box.right, box.bottom);
  const auto cut = [](float place, int64_t extent) {
    return std::clamp(place, 0.0F, static_cast<float>(extent));
  };
  box = {cut(box.left, image.width), cut(box.top, image.height), cut(box.right, image.width),
         cut(box.bottom, image.height)};
  if (area(box) > 0) {
    image.objects.push_back(std::move(object));
  } else {
    ++annotations.empty;
  }
}

}  // namespace tessera::data
