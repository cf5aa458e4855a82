// Masks of objects as COCO keeps them: the lengths of their runs.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "tessera/data/geometry.h"

namespace tessera::data {

// Pixels of an image that belong to an object, column after column, from the top down: runs of pixels that do
// not and that do, in turn, beginning with those that do not. They add up to height * width.
struct RunLengthMask {
  int64_t height = 0;
  int64_t width = 0;
  std::vector<uint32_t> runs = {};
  bool operator==(const RunLengthMask&) const = default;
};

// Throws Error(invalid_file) with the name where the runs do not add up to the pixels.
void check_runs(const RunLengthMask& mask, const std::string& name);

// COCO's text of runs (pycocotools, rleFrString): characters of six bits from '0' on, the lowest five of each
// a part of a number and the sixth saying that it goes on; from the fourth number on the difference from that
// two before. Throws Error(invalid_file) where the text is cut off or the runs leave the image.
RunLengthMask parse_run_lengths(std::string_view text, int64_t height, int64_t width,
                                const std::string& name);

// What outlines enclose, each x, y, x, y, ... in pixels: the pixels of pycocotools' rleFrPoly, which walks
// along the outline in fifths of a pixel; of several outlines all. Throws as check_outline().
RunLengthMask fill_outlines(std::span<const std::vector<float>> outlines, int64_t height, int64_t width,
                            const std::string& name);
// Throws Error(invalid_file) where there are fewer than three corners, a corner is no number or farther
// outside than the image is wide or high, or the outline is longer than kLongestOutline.
void check_outline(const std::vector<float>& outline, int64_t height, int64_t width, const std::string& name);
inline constexpr int64_t kLongestOutline = int64_t{1} << 22;  // pixels

int64_t area(const RunLengthMask& mask);
BoundingBox bounds(const RunLengthMask& mask);  // all zeros where there is no pixel
// Row by row, [height, width]: 1 where the object is, else 0.
std::vector<uint8_t> pixels(const RunLengthMask& mask);
// [view.height, view.width], as the view shows it: each pixel is that in which its middle lies.
void draw_mask(const RunLengthMask& mask, const View& view, std::span<uint8_t> target);

}  // namespace tessera::data
