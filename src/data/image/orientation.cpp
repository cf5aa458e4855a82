#include "data/image/orientation.h"

#include <algorithm>
#include <utility>

namespace tessera::data {

Turn turn_of(int64_t orientation) {
  constexpr Turn kTurns[] = {{},
                             {.from_right = true},
                             {.from_bottom = true, .from_right = true},
                             {.from_bottom = true},
                             {.transposed = true},
                             {.from_bottom = true, .transposed = true},
                             {.from_bottom = true, .from_right = true, .transposed = true},
                             {.from_right = true, .transposed = true}};
  return kTurns[orientation - 1];
}

Rectangle stored_part(const Rectangle& upright, int64_t orientation, int64_t stored_height,
                      int64_t stored_width) {
  const Turn turn = turn_of(orientation);
  Rectangle part = upright;
  if (turn.transposed)
    part = {.top = upright.left, .left = upright.top, .height = upright.width, .width = upright.height};
  if (turn.from_bottom) part.top = stored_height - part.top - part.height;
  if (turn.from_right) part.left = stored_width - part.left - part.width;
  return part;
}

void turn_upright(DecodedPart& decoded, int64_t orientation, std::vector<uint8_t>& scratch) {
  if (orientation == 1) return;
  const Turn turn = turn_of(orientation);
  const int64_t channels = decoded.channels;
  scratch.resize(decoded.pixels.size());
  const int64_t height = turn.transposed ? decoded.width : decoded.height;
  const int64_t width = turn.transposed ? decoded.height : decoded.width;
  uint8_t* target = scratch.data();
  for (int64_t y = 0; y < height; ++y) {
    for (int64_t x = 0; x < width; ++x) {
      int64_t row = turn.transposed ? x : y;
      int64_t column = turn.transposed ? y : x;
      if (turn.from_bottom) row = decoded.height - 1 - row;
      if (turn.from_right) column = decoded.width - 1 - column;
      target =
          std::copy_n(decoded.pixels.data() + (row * decoded.width + column) * channels, channels, target);
    }
  }
  decoded.pixels.swap(scratch);
  if (turn.from_bottom) decoded.top = static_cast<double>(decoded.height) - decoded.top - decoded.part_height;
  if (turn.from_right) decoded.left = static_cast<double>(decoded.width) - decoded.left - decoded.part_width;
  if (turn.transposed) {
    std::swap(decoded.top, decoded.left);
    std::swap(decoded.part_height, decoded.part_width);
  }
  decoded.height = height;
  decoded.width = width;
}

}  // namespace tessera::data
