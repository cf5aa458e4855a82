// What the formats have in common: a header, and the decoding of a part.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "tessera/data/image.h"

namespace tessera::data {

// Pixels that cover a part of a stored image, perhaps at a reduced scale.
struct DecodedPart {
  std::vector<uint8_t> pixels = {};  // [height, width, channels]
  int64_t height = 0;
  int64_t width = 0;
  int64_t channels = 3;  // 1 or 3
  double top = 0;        // where the wanted part begins and how large it is, in these pixels
  double left = 0;
  double part_height = 0;
  double part_width = 0;
};

// What is asked of a decoder; all in stored pixels, before any turning.
struct WantedPart {
  Rectangle part;
  int64_t height = 0;  // of what will be made of it
  int64_t width = 0;
  bool gray = false;  // whether color is of no use
  bool scaled = true;
};

class EncodedImage::Decoder {
 public:
  virtual ~Decoder() = default;
  // Fills `decoded`, whose memory is reused. Throws Error(invalid_file).
  virtual void decode(const WantedPart& wanted, DecodedPart& decoded) = 0;

  ImageInfo info;  // upright
};

// Each throws Error(invalid_file) where the header is broken. `bytes` outlive the decoder.
std::unique_ptr<EncodedImage::Decoder> open_jpeg(std::span<const std::byte> bytes, const std::string& name,
                                                 const ImageLimits& limits);
std::unique_ptr<EncodedImage::Decoder> open_png(std::span<const std::byte> bytes, const std::string& name,
                                                const ImageLimits& limits);
std::unique_ptr<EncodedImage::Decoder> open_webp(std::span<const std::byte> bytes, const std::string& name,
                                                 const ImageLimits& limits);

// Takes the stored extents and the orientation into `info`. Throws Error(invalid_file) where there are none
// or too many pixels.
void set_extents(ImageInfo& info, int64_t stored_height, int64_t stored_width, int64_t orientation,
                 const ImageLimits& limits, const std::string& name);

// Whether the orientation exchanges height and width.
constexpr bool is_transposed(int64_t orientation) {
  return orientation >= 5;
}

}  // namespace tessera::data
