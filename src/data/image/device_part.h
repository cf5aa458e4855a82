// What of a file's image a device's decoder is asked for.
#pragma once

#include <cstddef>
#include <span>

#include "tessera/data/image.h"
#include "tessera/device/common/jpeg_decoding.h"

namespace tessera::data {

// Not so where it is for the CPU: other formats, files that are not baseline, gray, RGB, inks, other filters,
// and files without the marker that ends them, whose damage a device does not see.
bool is_for_device(const ImageInfo& info, std::span<const std::byte> bytes, const DecodeOptions& options);

// The part of such a file as the options say, which have a crop, but for its bytes and the place of its
// pixels.
JpegPart device_part(const ImageInfo& info, const DecodeOptions& options);

}  // namespace tessera::data
