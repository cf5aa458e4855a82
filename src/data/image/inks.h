// Printing inks as colors of a screen.
#pragma once

#include <cstdint>
#include <vector>

namespace tessera::data {

// Cyan, magenta, yellow and black of each pixel become red, green and blue, at the beginning of `pixels`, by
// Pillow's rule: what black leaves of the light is shared by the others. Adobe's programs store how much of
// an ink is not there.
void inks_to_rgb(std::vector<uint8_t>& pixels, bool inverted);

}  // namespace tessera::data
