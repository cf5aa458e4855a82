#include "tessera/data/geometry.h"

#include <algorithm>

#include "tessera/base/error.h"

namespace tessera::data {
namespace {

double extent(float low, float high) {
  return std::max(0.0, static_cast<double>(high) - static_cast<double>(low));
}

// From pixels of an image to those of a view, along one axis.
struct AxisMap {
  double begin;  // of the part
  double scale;
  double end;  // of the view
  bool mirrored;

  double operator()(double place) const {
    const double seen = (place - begin) * scale;
    return mirrored ? end - seen : seen;
  }
};

AxisMap along_width(const View& view) {
  return {static_cast<double>(view.part.left),
          static_cast<double>(view.width) / static_cast<double>(view.part.width),
          static_cast<double>(view.width), view.mirrored};
}

AxisMap along_height(const View& view) {
  return {static_cast<double>(view.part.top),
          static_cast<double>(view.height) / static_cast<double>(view.part.height),
          static_cast<double>(view.height), false};
}

bool is_inside(const Rectangle& part, double x, double y) {
  const auto within = [](double place, int64_t begin, int64_t extent) {
    return place >= static_cast<double>(begin) && place < static_cast<double>(begin + extent);
  };
  return within(x, part.left, part.width) && within(y, part.top, part.height);
}

BoundingBox cut_at(const BoundingBox& box, const Rectangle& part) {
  const auto cut = [](float place, int64_t begin, int64_t extent) {
    return std::clamp(place, static_cast<float>(begin), static_cast<float>(begin + extent));
  };
  return {.left = cut(box.left, part.left, part.width),
          .top = cut(box.top, part.top, part.height),
          .right = cut(box.right, part.left, part.width),
          .bottom = cut(box.bottom, part.top, part.height)};
}

}  // namespace

double area(const BoundingBox& box) {
  return extent(box.left, box.right) * extent(box.top, box.bottom);
}

double intersection_over_union(const BoundingBox& a, const BoundingBox& b) {
  const double shared = extent(std::max(a.left, b.left), std::min(a.right, b.right)) *
                        extent(std::max(a.top, b.top), std::min(a.bottom, b.bottom));
  const double covered = area(a) + area(b) - shared;
  return covered > 0 ? shared / covered : 0;
}

View whole_view(int64_t height, int64_t width, int64_t view_height, int64_t view_width) {
  return {.part = {.height = height, .width = width}, .height = view_height, .width = view_width};
}

void check_visibility(const VisibilityRule& rule) {
  require(rule.minimum_visible >= 0 && rule.minimum_visible <= 1, ErrorCode::invalid_argument,
          "boxes stay of which {} is visible, expected 0 to 1", rule.minimum_visible);
}

std::optional<BoundingBox> seen(const BoundingBox& box, const View& view, const VisibilityRule& rule) {
  const double x = (static_cast<double>(box.left) + static_cast<double>(box.right)) / 2;
  const double y = (static_cast<double>(box.top) + static_cast<double>(box.bottom)) / 2;
  if (rule.by_center && !is_inside(view.part, x, y)) return {};
  const BoundingBox visible = cut_at(box, view.part);
  if (area(visible) <= 0 || area(visible) < rule.minimum_visible * area(box)) return {};
  const AxisMap across = along_width(view);
  const AxisMap down = along_height(view);
  const double left = across(visible.left);
  const double right = across(visible.right);
  return BoundingBox{.left = static_cast<float>(std::min(left, right)),
                     .top = static_cast<float>(down(visible.top)),
                     .right = static_cast<float>(std::max(left, right)),
                     .bottom = static_cast<float>(down(visible.bottom))};
}

Keypoint seen(const Keypoint& point, const View& view) {
  if (!point.visible || !is_inside(view.part, point.x, point.y)) return {};
  return {.x = static_cast<float>(along_width(view)(point.x)),
          .y = static_cast<float>(along_height(view)(point.y)),
          .visible = true};
}

std::vector<Keypoint> seen(std::span<const Keypoint> points, const View& view,
                           std::span<const int64_t> mirrored_order) {
  const bool exchanges = view.mirrored && !mirrored_order.empty();
  require(!exchanges || mirrored_order.size() == points.size(), ErrorCode::invalid_argument,
          "{} points are exchanged by an order of {}", points.size(), mirrored_order.size());
  std::vector<Keypoint> result;
  for (size_t i = 0; i < points.size(); ++i) {
    const int64_t from = exchanges ? mirrored_order[i] : static_cast<int64_t>(i);
    require(from >= 0 && from < std::ssize(points), ErrorCode::invalid_argument,
            "there is no point {} of {} to exchange", from, points.size());
    result.push_back(seen(points[static_cast<size_t>(from)], view));
  }
  return result;
}

}  // namespace tessera::data
