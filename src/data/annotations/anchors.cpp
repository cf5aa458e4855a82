#include "tessera/data/anchors.h"

#include <algorithm>
#include <cmath>

#include "tessera/base/error.h"

namespace tessera::data {
namespace {

void add_anchors(const AnchorGrid& grid, std::vector<BoundingBox>& anchors) {
  const auto code = ErrorCode::invalid_argument;
  require(grid.rows > 0 && grid.columns > 0 && !grid.sizes.empty(), code,
          "anchors of {} sizes at {}x{} places, expected some", grid.sizes.size(), grid.rows, grid.columns);
  require(grid.row_step > 0 && grid.column_step > 0, code,
          "anchors {} rows and {} columns apart, expected more than 0", grid.row_step, grid.column_step);
  for (const AnchorSize& size : grid.sizes) {
    require(size.height > 0 && size.width > 0, code, "an anchor of {}x{} pixels, expected more than 0",
            size.height, size.width);
  }
  for (int64_t row = 0; row < grid.rows; ++row) {
    for (int64_t column = 0; column < grid.columns; ++column) {
      const double x = (static_cast<double>(column) + grid.offset) * grid.column_step;
      const double y = (static_cast<double>(row) + grid.offset) * grid.row_step;
      for (const AnchorSize& size : grid.sizes) {
        anchors.push_back({static_cast<float>(x - size.width / 2), static_cast<float>(y - size.height / 2),
                           static_cast<float>(x + size.width / 2), static_cast<float>(y + size.height / 2)});
      }
    }
  }
}

// The object that an anchor overlaps most, and how much.
struct Nearest {
  int32_t object = kBackground;
  double overlap = 0;
};

}  // namespace

std::vector<BoundingBox> grid_anchors(std::span<const AnchorGrid> grids) {
  std::vector<BoundingBox> anchors;
  for (const AnchorGrid& grid : grids) add_anchors(grid, anchors);
  return anchors;
}

void check_anchor_matching(const AnchorMatching& matching) {
  require(matching.background >= 0 && matching.background <= matching.foreground && matching.foreground <= 1,
          ErrorCode::invalid_argument,
          "anchors are background below an overlap of {} and find objects from {}, expected 0 <= the one <= "
          "the other <= 1",
          matching.background, matching.foreground);
}

std::vector<int32_t> match_anchors(std::span<const BoundingBox> anchors, std::span<const BoundingBox> objects,
                                   std::span<const bool> ignored, const AnchorMatching& matching) {
  check_anchor_matching(matching);
  require(ignored.empty() || ignored.size() == objects.size(), ErrorCode::invalid_argument,
          "{} marks of {} objects", ignored.size(), objects.size());
  std::vector<Nearest> nearest(anchors.size());
  std::vector<size_t> claimed(objects.size(), anchors.size());  // the best anchor of each object
  std::vector<bool> is_best(anchors.size(), false);             // of some object, or as good
  std::vector<double> overlaps(anchors.size());
  for (size_t object = 0; object < objects.size(); ++object) {
    double best = 0;
    for (size_t i = 0; i < anchors.size(); ++i) {
      overlaps[i] = intersection_over_union(anchors[i], objects[object]);
      if (overlaps[i] > nearest[i].overlap) nearest[i] = {static_cast<int32_t>(object), overlaps[i]};
      if (overlaps[i] > best) {
        best = overlaps[i];
        claimed[object] = i;
      }
    }
    for (size_t i = 0; best > 0 && i < anchors.size(); ++i)
      if (overlaps[i] == best) is_best[i] = true;
  }
  std::vector<int32_t> found(anchors.size(), kBackground);
  for (size_t i = 0; i < anchors.size(); ++i) {
    const bool enough = nearest[i].overlap >= matching.foreground && nearest[i].overlap > 0;
    if (enough || (is_best[i] && matching.best == BestAnchors::enough)) {
      found[i] = nearest[i].object;
    } else if (nearest[i].overlap >= matching.background) {
      found[i] = nearest[i].object == kBackground ? kBackground : kUncounted;
    }
  }
  if (matching.best == BestAnchors::claimed) {
    for (size_t object = 0; object < objects.size(); ++object)
      if (claimed[object] < anchors.size()) found[claimed[object]] = static_cast<int32_t>(object);
  }
  for (int32_t& object : found)
    if (object >= 0 && !ignored.empty() && ignored[static_cast<size_t>(object)]) object = kUncounted;
  return found;
}

BoxOffsets box_offsets(const BoundingBox& anchor, const BoundingBox& box, const BoxOffsets& weights) {
  const double width = double{anchor.right} - anchor.left;
  const double height = double{anchor.bottom} - anchor.top;
  const double across = (double{box.left} + box.right - anchor.left - anchor.right) / 2 / width;
  const double down = (double{box.top} + box.bottom - anchor.top - anchor.bottom) / 2 / height;
  const double wider = std::log((double{box.right} - box.left) / width);
  const double higher = std::log((double{box.bottom} - box.top) / height);
  return {static_cast<float>(weights[0] * across), static_cast<float>(weights[1] * down),
          static_cast<float>(weights[2] * wider), static_cast<float>(weights[3] * higher)};
}

BoundingBox box_at(const BoundingBox& anchor, const BoxOffsets& offsets, const BoxOffsets& weights) {
  const double width = double{anchor.right} - anchor.left;
  const double height = double{anchor.bottom} - anchor.top;
  const double x = (double{anchor.left} + anchor.right) / 2 + offsets[0] / double{weights[0]} * width;
  const double y = (double{anchor.top} + anchor.bottom) / 2 + offsets[1] / double{weights[1]} * height;
  const double half_width = width * std::exp(offsets[2] / double{weights[2]}) / 2;
  const double half_height = height * std::exp(offsets[3] / double{weights[3]}) / 2;
  return {static_cast<float>(x - half_width), static_cast<float>(y - half_height),
          static_cast<float>(x + half_width), static_cast<float>(y + half_height)};
}

}  // namespace tessera::data
