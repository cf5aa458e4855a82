// Of EXIF, the one thing that says how pixels are to be shown.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

namespace tessera::data {

// The tag Orientation (0x0112) in the first directory of a TIFF header (EXIF 2.32, section 4.6.4), 1 to 8; 1
// where there is none or the bytes are broken, as viewers take it.
int64_t exif_orientation(std::span<const std::byte> tiff);

}  // namespace tessera::data
