#include "tessera/data/run_length_mask.h"

#include <algorithm>

#include "tessera/base/error.h"

namespace tessera::data {
namespace {

// Calls visit(begin, end) for the pixels of each run of the object, column after column.
template <typename Visit>
void visit_runs(const RunLengthMask& mask, const Visit& visit) {
  int64_t place = 0;
  for (size_t i = 0; i < mask.runs.size(); ++i) {
    const int64_t end = place + mask.runs[i];
    if (i % 2 == 1 && end > place) visit(place, end);
    place = end;
  }
}

// One of the numbers of a text; `text` goes on after it.
int64_t next_number(std::string_view& text, const std::string& name) {
  constexpr unsigned kBits = 5;
  constexpr unsigned kMostCharacters = 7;  // 35 bits, of which a run has 32 and a sign
  uint64_t number = 0;
  for (unsigned i = 0; i < kMostCharacters && i < text.size(); ++i) {
    const auto character = static_cast<unsigned char>(text[i]);
    require(character >= '0' && character < '0' + 64, ErrorCode::invalid_file,
            "{}: the runs of a mask hold the character {}", name, static_cast<int>(character));
    const auto bits = static_cast<uint64_t>(character - '0');
    number |= (bits & 0x1fU) << kBits * i;
    if ((bits & 0x20U) != 0) continue;
    if ((bits & 0x10U) != 0) number |= ~uint64_t{0} << kBits * (i + 1);
    text.remove_prefix(i + 1);
    return static_cast<int64_t>(number);
  }
  fail(ErrorCode::invalid_file, "{}: the runs of a mask are cut off, or too long for a number", name);
}

}  // namespace

void check_runs(const RunLengthMask& mask, const std::string& name) {
  uint64_t sum = 0;  // of numbers of 32 bits, fewer than 2^32
  for (const uint32_t run : mask.runs) sum += run;
  require(sum == static_cast<uint64_t>(mask.height * mask.width), ErrorCode::invalid_file,
          "{}: the runs of a mask add up to {}, its image has {}x{} pixels", name, sum, mask.width,
          mask.height);
}

RunLengthMask parse_run_lengths(std::string_view text, int64_t height, int64_t width,
                                const std::string& name) {
  RunLengthMask mask{.height = height, .width = width};
  while (!text.empty()) {
    int64_t run = next_number(text, name);
    const size_t count = mask.runs.size();
    if (count > 2) run += mask.runs[count - 2];
    require(run >= 0 && run <= height * width, ErrorCode::invalid_file,
            "{}: a run of {} pixels in a mask of {}x{}", name, run, width, height);
    mask.runs.push_back(static_cast<uint32_t>(run));
  }
  check_runs(mask, name);
  return mask;
}

int64_t area(const RunLengthMask& mask) {
  int64_t area = 0;
  visit_runs(mask, [&](int64_t begin, int64_t end) { area += end - begin; });
  return area;
}

BoundingBox bounds(const RunLengthMask& mask) {
  int64_t left = mask.width, right = 0, top = mask.height, bottom = 0;
  visit_runs(mask, [&](int64_t begin, int64_t end) {
    const int64_t first = begin / mask.height;
    const int64_t last = (end - 1) / mask.height;
    left = std::min(left, first);
    right = std::max(right, last + 1);
    top = first < last ? 0 : std::min(top, begin % mask.height);
    bottom = first < last ? mask.height : std::max(bottom, (end - 1) % mask.height + 1);
  });
  if (right == 0) return {};
  return {.left = static_cast<float>(left),
          .top = static_cast<float>(top),
          .right = static_cast<float>(right),
          .bottom = static_cast<float>(bottom)};
}

std::vector<uint8_t> pixels(const RunLengthMask& mask) {
  std::vector<uint8_t> result(static_cast<size_t>(mask.height * mask.width));
  visit_runs(mask, [&](int64_t begin, int64_t end) {
    for (int64_t place = begin; place < end; ++place)
      result[static_cast<size_t>(place % mask.height * mask.width + place / mask.height)] = 1;
  });
  return result;
}

void draw_mask(const RunLengthMask& mask, const View& view, std::span<uint8_t> target) {
  require(std::ssize(target) == view.height * view.width, ErrorCode::invalid_argument,
          "{} bytes for a mask of {}x{} pixels", target.size(), view.width, view.height);
  // The first pixel of a column whose middle lies at or below row `row` of the image.
  const auto first_from = [&](int64_t row) {
    const int64_t below = 2 * (row - view.part.top) * view.height - view.part.height;
    return std::clamp<int64_t>(below <= 0 ? 0 : (below + 2 * view.part.height - 1) / (2 * view.part.height),
                               0, view.height);
  };
  std::ranges::fill(target, uint8_t{0});
  // Which columns of the view show a column of the image: those whose middles lie in it.
  std::vector<std::vector<int64_t>> shown(static_cast<size_t>(view.part.width));
  for (int64_t x = 0; x < view.width; ++x) {
    const int64_t column = (2 * x + 1) * view.part.width / (2 * view.width);
    shown[static_cast<size_t>(column)].push_back(view.mirrored ? view.width - 1 - x : x);
  }
  visit_runs(mask, [&](int64_t begin, int64_t end) {
    for (int64_t place = begin; place < end;) {
      const int64_t column = place / mask.height;
      const int64_t stop = std::min(end, (column + 1) * mask.height);
      const int64_t seen = column - view.part.left;
      if (seen >= 0 && seen < view.part.width) {
        const int64_t top = first_from(place - column * mask.height);
        const int64_t bottom = first_from(stop - column * mask.height);
        for (const int64_t x : shown[static_cast<size_t>(seen)])
          for (int64_t y = top; y < bottom; ++y) target[static_cast<size_t>(y * view.width + x)] = 1;
      }
      place = stop;
    }
  });
}

}  // namespace tessera::data
