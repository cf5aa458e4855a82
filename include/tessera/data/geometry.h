// Where the objects of an image are, and where they come to lie when a part of it is cut out, resized and
// mirrored. Places are in pixels from the upper left corner; a pixel reaches from its number to the next.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "tessera/data/crop.h"

namespace tessera::data {

struct BoundingBox {
  float left = 0;
  float top = 0;
  float right = 0;
  float bottom = 0;
  bool operator==(const BoundingBox&) const = default;
};
double area(const BoundingBox& box);  // 0 where it has none
// Of two boxes the area of what they share in that of what they cover; 0 where neither has any.
double intersection_over_union(const BoundingBox& a, const BoundingBox& b);

struct Keypoint {
  float x = 0;
  float y = 0;
  bool visible = false;
  bool operator==(const Keypoint&) const = default;
};

// What is seen of an image: a part of it, resized, and then perhaps mirrored left to right.
struct View {
  Rectangle part;
  int64_t height = 0;
  int64_t width = 0;
  bool mirrored = false;
};
View whole_view(int64_t height, int64_t width, int64_t view_height, int64_t view_width);

// Which boxes stay when a part of an image is cut out.
struct VisibilityRule {
  bool by_center = true;       // those alone whose center is in the part
  double minimum_visible = 0;  // and of whose area at least this share is, above 0 and at most 1; 0: any
};
// Throws Error(invalid_argument) naming what is out of range.
void check_visibility(const VisibilityRule& rule);

// Where a box lies in a view, cut at its borders; nothing where it does not stay.
std::optional<BoundingBox> seen(const BoundingBox& box, const View& view, const VisibilityRule& rule);
// Where a point lies in a view; not visible, and at 0, where it lies outside or was not visible before.
Keypoint seen(const Keypoint& point, const View& view);
// The same of the points of one object. In a mirrored view point i is what point mirrored_order[i] was before
// (the left eye what the right one was); an empty order exchanges none. Throws Error(invalid_argument) where
// the order names a point that is not there.
std::vector<Keypoint> seen(std::span<const Keypoint> points, const View& view,
                           std::span<const int64_t> mirrored_order);

// A part of an image that shares at least so much with an object (Liu et al., "SSD: Single shot multibox
// detector", 2016, section 2.2), drawn as torchvision's RandomIoUCrop.
struct OverlapCropOptions {
  // One of these is drawn: the least intersection over union with one of the boxes whose centers are inside;
  // at 1 or more the image stays whole.
  std::vector<double> overlaps = {0, 0.1, 0.3, 0.5, 0.7, 0.9, 1};
  double minimum_side = 0.3;  // of height and width, each by itself
  double maximum_side = 1;
  double minimum_ratio = 0.5;  // of width to height
  double maximum_ratio = 2;
};
// Throws Error(invalid_argument) naming the option that is out of range.
void check_overlap_crop(const OverlapCropOptions& options);
// Depends only on the arguments. The whole image where no part is found: ten overlaps are drawn, and for each
// forty parts.
Rectangle random_overlap_crop(const OverlapCropOptions& options, int64_t height, int64_t width,
                              std::span<const BoundingBox> boxes, uint64_t seed, uint64_t epoch,
                              int64_t example);

}  // namespace tessera::data
