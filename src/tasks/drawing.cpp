#include "tasks/drawing.h"

#include <cmath>
#include <string_view>

namespace tessera::tasks {

std::string draw(const report::Picture& picture) {
  constexpr std::string_view kShades = " .:-=+*#%@";
  const auto at = [&](int64_t row, int64_t column) {  // the mean over channels
    float sum = 0;
    for (int64_t c = 0; c < picture.channels; ++c) {
      const int64_t place = (row * picture.width + column) * picture.channels + c;
      sum += picture.pixels[static_cast<size_t>(place)];
    }
    return sum / static_cast<float>(255 * picture.channels);
  };
  std::string text;
  for (int64_t row = 0; row + 1 < picture.height; row += 2) {
    text += "  ";
    for (int64_t column = 0; column < picture.width; ++column) {
      const float brightness = (at(row, column) + at(row + 1, column)) / 2;
      text += kShades[static_cast<size_t>(std::lround(brightness * static_cast<float>(kShades.size() - 1)))];
    }
    text += '\n';
  }
  return text;
}

}  // namespace tessera::tasks
