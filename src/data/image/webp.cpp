// WebP through libwebp: only the wanted part.
#include <algorithm>
#include <cstring>

#include <webp/decode.h>

#include "tessera/base/error.h"

#include "data/image/decoder.h"
#include "data/image/exif.h"
#include "data/little_endian.h"

namespace tessera::data {
namespace {

constexpr int64_t kColorMargin = 2;  // pixels beside the part that its colors depend on

// The Exif chunk of the extended format (WebP container specification, "Metadata"); empty where there is
// none.
std::span<const std::byte> exif_chunk(std::span<const std::byte> bytes) {
  constexpr size_t kHeader = 8;  // four letters and the number of bytes that follow
  size_t offset = 12;            // after RIFF, its size and WEBP
  while (offset + kHeader <= bytes.size()) {
    const uint64_t size = little_endian(bytes.subspan(offset + 4, 4));
    const auto contents = bytes.subspan(offset + kHeader);
    if (contents.size() < size) return {};
    if (std::memcmp(bytes.data() + offset, "EXIF", 4) == 0) return contents.first(size);
    offset += kHeader + size + size % 2;
  }
  return {};
}

class WebpDecoder : public EncodedImage::Decoder {
 public:
  WebpDecoder(std::span<const std::byte> bytes, const std::string& name, const ImageLimits& limits)
      : name_(name), bytes_(bytes) {
    WebPBitstreamFeatures features;
    const VP8StatusCode status = WebPGetFeatures(data(), bytes.size(), &features);
    require(status == VP8_STATUS_OK, ErrorCode::invalid_file, "{}: the WebP file is broken: its header is {}",
            name, status == VP8_STATUS_NOT_ENOUGH_DATA ? "truncated" : "none");
    require(features.has_animation == 0, ErrorCode::invalid_file,
            "{}: the WebP file is an animation, expected a single image", name);
    info.format = ImageFormat::webp;
    info.channels = features.has_alpha != 0 ? 4 : 3;
    stored_height_ = features.height;
    stored_width_ = features.width;
    set_extents(info, features.height, features.width, exif_orientation(exif_chunk(bytes)), limits, name);
  }

  void decode(const WantedPart& wanted, DecodedPart& decoded) override {
    WebPDecoderConfig config;
    require(WebPInitDecoderConfig(&config) != 0, ErrorCode::internal, "libwebp is of another version");
    // Corners lie where color does, at even places; its neighbors count where it is made smooth.
    const Rectangle& part = wanted.part;
    const int64_t top = std::max<int64_t>((part.top & ~int64_t{1}) - kColorMargin, 0);
    const int64_t left = std::max<int64_t>((part.left & ~int64_t{1}) - kColorMargin, 0);
    const int64_t bottom = std::min(part.top + part.height + kColorMargin, stored_height_);
    const int64_t right = std::min(part.left + part.width + kColorMargin, stored_width_);
    decoded = {.pixels = std::move(decoded.pixels),
               .height = bottom - top,
               .width = right - left,
               .channels = 3,
               .top = static_cast<double>(part.top - top),
               .left = static_cast<double>(part.left - left),
               .part_height = static_cast<double>(part.height),
               .part_width = static_cast<double>(part.width)};
    decoded.pixels.resize(static_cast<size_t>(decoded.height * decoded.width * 3));
    config.options.use_cropping = 1;
    config.options.crop_left = static_cast<int>(left);
    config.options.crop_top = static_cast<int>(top);
    config.options.crop_width = static_cast<int>(decoded.width);
    config.options.crop_height = static_cast<int>(decoded.height);
    config.output.colorspace = MODE_RGB;
    config.output.is_external_memory = 1;
    config.output.u.RGBA = {.rgba = decoded.pixels.data(),
                            .stride = static_cast<int>(decoded.width * 3),
                            .size = decoded.pixels.size()};
    const VP8StatusCode status = WebPDecode(data(), bytes_.size(), &config);
    WebPFreeDecBuffer(&config.output);
    require(status != VP8_STATUS_OUT_OF_MEMORY, ErrorCode::out_of_memory, "{}: no memory for the WebP file",
            name_);
    require(status == VP8_STATUS_OK, ErrorCode::invalid_file, "{}: the WebP file is broken: {}", name_,
            status == VP8_STATUS_NOT_ENOUGH_DATA || status == VP8_STATUS_SUSPENDED ? "it is truncated"
                                                                                   : "its data is corrupt");
  }

 private:
  const uint8_t* data() const { return reinterpret_cast<const uint8_t*>(bytes_.data()); }

  std::string name_;
  std::span<const std::byte> bytes_;
  int64_t stored_height_ = 0;
  int64_t stored_width_ = 0;
};

}  // namespace

std::unique_ptr<EncodedImage::Decoder> open_webp(std::span<const std::byte> bytes, const std::string& name,
                                                 const ImageLimits& limits) {
  return std::make_unique<WebpDecoder>(bytes, name, limits);
}

}  // namespace tessera::data
