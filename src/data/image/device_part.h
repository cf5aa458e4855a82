// What of a file's image a device's decoder is asked for.
#pragma once

#include <cstddef>
#include <optional>
#include <span>

#include "tessera/data/image.h"
#include "tessera/device/common/jpeg_decoding.h"

namespace tessera::data {

// As the options say, but for the place of its pixels; none where it is for the CPU: other formats, files
// that are not baseline, gray, RGB, inks, other filters, and files without the marker that ends them, whose
// damage a device does not see. `options` have a crop.
std::optional<JpegPart> device_part(const ImageInfo& info, std::span<const std::byte> bytes,
                                    const DecodeOptions& options);

}  // namespace tessera::data
