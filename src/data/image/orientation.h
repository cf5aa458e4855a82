// How EXIF says that stored pixels are to be turned.
#pragma once

#include "data/image/decoder.h"

namespace tessera::data {

// A mirroring of rows, one of columns, and then an exchange of both, of the stored image (EXIF 2.32, 4.6.4).
struct Turn {
  bool from_bottom = false;
  bool from_right = false;
  bool transposed = false;
};
// That makes it upright.
Turn turn_of(int64_t orientation);

// Where a part of the upright image lies in the stored one of those extents.
Rectangle stored_part(const Rectangle& upright, int64_t orientation, int64_t stored_height,
                      int64_t stored_width);

// Turns pixels and the place of the part in them; `scratch` is overwritten.
void turn_upright(DecodedPart& decoded, int64_t orientation, std::vector<uint8_t>& scratch);

}  // namespace tessera::data
