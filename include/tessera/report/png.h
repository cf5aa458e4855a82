// Small pictures as PNG, for reports.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>

namespace tessera::report {

// A PNG file (RFC 2083) of pixels [height, width, channels], 8 bits each; channels: 1 grey, 2 grey and alpha,
// 3 RGB, 4 RGBA. Throws Error(invalid_argument) on other channels, empty pictures and a span of another size.
std::string encode_png(std::span<const uint8_t> pixels, int64_t height, int64_t width, int64_t channels);

// RFC 4648, with padding.
std::string encode_base64(std::string_view bytes);

}  // namespace tessera::report
