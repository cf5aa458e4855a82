// Ground truth of networks that find objects from anchors: which anchor is to find which object, and how far
// off it is.
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <vector>

#include "tessera/data/geometry.h"

namespace tessera::data {

struct AnchorSize {
  double height = 0;
  double width = 0;
};
// One map of features: at each of its places an anchor of each size, around the same middle.
struct AnchorGrid {
  int64_t rows = 0;
  int64_t columns = 0;
  double row_step = 0;  // pixels of the image from one place to the next
  double column_step = 0;
  double offset = 0.5;  // of a step, from the image's corner to the first middle
  std::vector<AnchorSize> sizes = {};
};
// Of all maps in turn; within one by rows, then columns, then sizes, as its features lie in memory. They may
// reach out of the image. Throws Error(invalid_argument) where a map is empty, or steps or sizes are not
// positive.
std::vector<BoundingBox> grid_anchors(std::span<const AnchorGrid> grids);

// What an anchor is to say in place of an object's number.
inline constexpr int32_t kBackground = -1;
inline constexpr int32_t kUncounted = -2;  // neither

// What becomes of an object that overlaps no anchor enough.
enum class BestAnchors : uint8_t {
  none,     // it is not to be found
  enough,   // its best anchors are as good as those that overlap enough: each finds the object that it
            // overlaps most (Ren et al., "Faster R-CNN", 2015; RetinaNet)
  claimed,  // the best one finds it, whatever else it overlaps (Liu et al., "SSD", 2016)
};

struct AnchorMatching {
  // Least intersection over union with the object that an anchor overlaps most, to find it.
  double foreground = 0.5;
  // What is below is background, what lies between is not counted.
  double background = 0.4;
  BestAnchors best = BestAnchors::enough;
};
// Throws Error(invalid_argument) naming what is out of range.
void check_anchor_matching(const AnchorMatching& matching);

// For each anchor the number of its object, kBackground or kUncounted. Of objects that are marked `ignored`
// (as many marks as objects, or none) no anchor is to find one; those that would are not counted.
std::vector<int32_t> match_anchors(std::span<const BoundingBox> anchors, std::span<const BoundingBox> objects,
                                   std::span<const bool> ignored, const AnchorMatching& matching);

using BoxOffsets = std::array<float, 4>;

// What a network of such anchors is trained with.
struct AnchorTargets {
  std::vector<BoundingBox> anchors = {};
  AnchorMatching matching = {};
  BoxOffsets weights = {1, 1, 1, 1};
};

// How a box lies to its anchor: the way between their middles, x and y, in widths and heights of the anchor,
// and the logarithms of their widths' and heights' ratios; each times a weight.
BoxOffsets box_offsets(const BoundingBox& anchor, const BoundingBox& box,
                       const BoxOffsets& weights = {1, 1, 1, 1});
BoundingBox box_at(const BoundingBox& anchor, const BoxOffsets& offsets,
                   const BoxOffsets& weights = {1, 1, 1, 1});

}  // namespace tessera::data
