#include "data/image/inks.h"

#include <cstddef>

namespace tessera::data {
namespace {

// a * b / 255, rounded to nearest, for a and b up to 255.
int product_of_shares(int a, int b) {
  const int product = a * b + 128;
  return (product + (product >> 8)) >> 8;
}

}  // namespace

void inks_to_rgb(std::vector<uint8_t>& pixels, bool inverted) {
  const size_t count = pixels.size() / 4;
  const int flip = inverted ? 255 : 0;
  for (size_t i = 0; i < count; ++i) {
    const uint8_t* const inks = pixels.data() + 4 * i;
    const int left_by_black = 255 - (inks[3] ^ flip);
    int color[3];
    for (size_t c = 0; c < 3; ++c)
      color[c] = left_by_black - product_of_shares(inks[c] ^ flip, left_by_black);
    for (size_t c = 0; c < 3; ++c) pixels[3 * i + c] = static_cast<uint8_t>(color[c]);
  }
}

}  // namespace tessera::data
