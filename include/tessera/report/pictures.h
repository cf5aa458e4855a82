// Pictures in a report.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "tessera/train/evaluator.h"

namespace tessera::report {

struct Picture {
  std::vector<uint8_t> pixels = {};  // [height, width, channels]; grey, RGB, or shown by the first channel
  int64_t height = 0;
  int64_t width = 0;
  int64_t channels = 1;
  std::string caption = {};  // of a picture in a gallery
};

// For the `src` of an <img>. Throws Error(invalid_argument) when extents and pixels disagree.
std::string picture_source(const Picture& picture);

// Side by side, as they come, with what is to be said of each below it. Throws as picture_source().
train::ReportSection gallery_section(const std::string& title, const std::string& note,
                                     const std::vector<Picture>& pictures);

}  // namespace tessera::report
