// From outlines to the pixels that they enclose.
#include <algorithm>
#include <cmath>

#include "tessera/base/error.h"
#include "tessera/data/run_length_mask.h"

namespace tessera::data {
namespace {

constexpr int64_t kSteps = 5;  // of a pixel, in which pycocotools walks along an outline

struct Point {
  int64_t x = 0;
  int64_t y = 0;
};

// Half open, column after column.
struct Interval {
  int64_t begin = 0;
  int64_t end = 0;
};

// As pycocotools rounds: halves up, and what is below zero towards it.
int64_t rounded(double place) {
  return static_cast<int64_t>(std::trunc(place + 0.5));
}

std::vector<Point> corners_of(const std::vector<float>& outline, int64_t height, int64_t width,
                              const std::string& name) {
  const auto code = ErrorCode::invalid_file;
  require(outline.size() >= 6 && outline.size() % 2 == 0, code,
          "{}: an outline of {} numbers, expected x and y of three corners or more", name, outline.size());
  const auto place = [&](float value, int64_t extent) {
    const auto most = static_cast<float>(extent);
    require(value >= -most && value <= 2 * most, code,
            "{}: an outline reaches to {} in an image of {}x{} pixels", name, value, width, height);
    return rounded(kSteps * static_cast<double>(value));
  };
  std::vector<Point> corners;
  for (size_t i = 0; i < outline.size(); i += 2)
    corners.push_back({place(outline[i], width), place(outline[i + 1], height)});
  int64_t length = 0;
  for (size_t i = 0; i < corners.size(); ++i) {
    const Point& next = corners[(i + 1) % corners.size()];
    length += std::max(std::abs(corners[i].x - next.x), std::abs(corners[i].y - next.y));
  }
  require(length <= kSteps * kLongestOutline, code, "{}: an outline is {} pixels long, {} at most are drawn",
          name, length / kSteps, kLongestOutline);
  corners.push_back(corners.front());
  return corners;
}

// Calls visit(point) for the steps from one corner to the next, both among them.
template <typename Visit>
void walk(const Point& from, const Point& to, const Visit& visit) {
  const int64_t across = std::abs(to.x - from.x);
  const int64_t down = std::abs(to.y - from.y);
  const bool wide = across >= down;
  // An edge is the same points either way, so that it is walked from its smaller end.
  const bool reversed = wide ? from.x > to.x : from.y > to.y;
  const Point& begin = reversed ? to : from;
  const Point& end = reversed ? from : to;
  const int64_t count = wide ? across : down;
  const double slope =
      count == 0 ? 0
                 : static_cast<double>(wide ? end.y - begin.y : end.x - begin.x) / static_cast<double>(count);
  for (int64_t i = 0; i <= count; ++i) {
    const int64_t step = reversed ? count - i : i;
    const auto aside = [&](int64_t origin) {
      return rounded(static_cast<double>(origin) + slope * static_cast<double>(step));
    };
    visit(wide ? Point{begin.x + step, aside(begin.y)} : Point{aside(begin.x), begin.y + step});
  }
}

// Where the outline crosses the middles of columns, as places column after column.
std::vector<int64_t> crossings(const std::vector<Point>& corners, int64_t height, int64_t width) {
  std::vector<int64_t> places;
  bool first = true;
  Point last;
  const auto visit = [&](const Point& point) {
    if (!first && point.x != last.x) {
      // Steps from s to s + 1 cross a column's middle where s is two fifths into it.
      const int64_t step = std::min(point.x, last.x);
      const int64_t column = step / kSteps;
      if (step >= 0 && step % kSteps == kSteps / 2 && column < width) {
        const double y = (static_cast<double>(std::min(point.y, last.y)) + 0.5) / kSteps - 0.5;
        places.push_back(column * height +
                         static_cast<int64_t>(std::ceil(std::clamp(y, 0.0, static_cast<double>(height)))));
      }
    }
    last = point;
    first = false;
  };
  for (size_t i = 0; i + 1 < corners.size(); ++i) walk(corners[i], corners[i + 1], visit);
  std::ranges::sort(places);
  return places;
}

void add_intervals(const std::vector<int64_t>& places, int64_t pixels, std::vector<Interval>& intervals) {
  for (size_t i = 0; i < places.size(); i += 2) {
    const int64_t end = i + 1 < places.size() ? places[i + 1] : pixels;
    if (end > places[i]) intervals.push_back({places[i], end});
  }
}

}  // namespace

void check_outline(const std::vector<float>& outline, int64_t height, int64_t width,
                   const std::string& name) {
  corners_of(outline, height, width, name);
}

RunLengthMask fill_outlines(std::span<const std::vector<float>> outlines, int64_t height, int64_t width,
                            const std::string& name) {
  std::vector<Interval> intervals;
  for (const std::vector<float>& outline : outlines)
    add_intervals(crossings(corners_of(outline, height, width, name), height, width), height * width,
                  intervals);
  std::ranges::sort(intervals, {}, &Interval::begin);
  RunLengthMask mask{.height = height, .width = width};
  int64_t place = 0;
  for (size_t i = 0; i < intervals.size();) {
    const int64_t begin = intervals[i].begin;
    int64_t end = intervals[i].end;
    for (++i; i < intervals.size() && intervals[i].begin <= end; ++i) end = std::max(end, intervals[i].end);
    mask.runs.push_back(static_cast<uint32_t>(begin - place));
    mask.runs.push_back(static_cast<uint32_t>(end - begin));
    place = end;
  }
  mask.runs.push_back(static_cast<uint32_t>(height * width - place));
  return mask;
}

}  // namespace tessera::data
