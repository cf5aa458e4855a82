// Images in files: JPEG, PNG and WebP, from their bytes to pixels of a fixed size. All pixels are uint8
// [H, W, C], channels-last, C 1 (gray) or 3 (RGB).
//
//   EncodedImage image(bytes, "cat.jpg");
//   image.decode({.crop = center_crop(image.info().height, image.info().width, 0.875),
//                 .height = 224, .width = 224}, pixels);
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "tessera/data/crop.h"

namespace tessera::data {

enum class ImageFormat : uint8_t { jpeg, png, webp };
std::string_view format_name(ImageFormat format);

// Whether the name ends as that of an image does: .jpg, .jpeg, .png or .webp, in any case.
bool has_image_ending(const std::filesystem::path& path);

// How pixels of one size are made of those of another. All but `nearest` widen their support when they
// shrink, which is what Pillow does and torchvision calls antialias.
enum class ResizeFilter : uint8_t { nearest, area, bilinear, bicubic };

// What a file's header says.
struct ImageInfo {
  ImageFormat format = ImageFormat::jpeg;
  int64_t height = 0;  // upright, as decode() shows it
  int64_t width = 0;
  int64_t channels = 0;     // in the file: 1, 2 with alpha, 3, 4 with alpha or of printing inks
  int64_t bits = 8;         // of a channel
  int64_t orientation = 1;  // of EXIF, 1 to 8: how the stored pixels have to be turned
  bool progressive = false;
  bool ycbcr = false;  // JPEG: whether color is stored as brightness and two differences
};

struct ImageLimits {
  int64_t pixels = int64_t{1} << 27;  // of a file, whatever part of it is wanted
};

struct DecodeOptions {
  std::optional<Rectangle> crop = {};  // of the upright image; none: all of it
  int64_t height = 0;                  // of the result
  int64_t width = 0;
  int64_t channels = 3;  // 1 or 3; gray is repeated, color weighed (ITU-R BT.601), alpha dropped
  ResizeFilter filter = ResizeFilter::bilinear;
  bool mirrored = false;  // left to right, after all else
  // JPEG: whether crops of more than twice the result's size are decoded at 1/2, 1/4 or 1/8 (fewer
  // coefficients of each block), which is faster and differs by some gray levels.
  bool scaled = true;
};

// All pixels of an image, upright, uint8 [height, width, channels].
struct DecodedImage {
  int64_t height = 0;
  int64_t width = 0;
  int64_t channels = 3;  // 1 or 3
  std::vector<uint8_t> pixels = {};
};
// What EncodedImage::decode() makes of the file of such an image with the same options, `scaled` apart, which
// is false here: to the bit, if it was decoded for as many channels. Throws Error(invalid_argument) when the
// crop or the span does not fit.
void cut_image(const DecodedImage& image, const DecodeOptions& options, std::span<uint8_t> pixels);

// An image whose header was read. Its bytes must outlive it; for one thread at a time.
class EncodedImage {
 public:
  // `name` stands in the messages. Throws Error(invalid_file) when the bytes are no image of a known format,
  // their header is broken, or there are more pixels than the limit, before memory is taken for any.
  EncodedImage(std::span<const std::byte> bytes, const std::string& name, const ImageLimits& limits = {});
  EncodedImage(EncodedImage&&) noexcept;
  EncodedImage& operator=(EncodedImage&&) noexcept;
  ~EncodedImage();

  const ImageInfo& info() const;

  // Decodes what the crop needs, turns it upright, and resizes it into [height, width, channels]. The crop is
  // resized as if it were the whole image. May be called once. Throws Error(invalid_argument) when the crop
  // or the span does not fit, Error(invalid_file) when the file is truncated or corrupt in that part.
  void decode(const DecodeOptions& options, std::span<uint8_t> pixels);

  // All of it in its own size, from which images of that many channels, 1 or 3, are to be cut. May be called
  // once, in place of decode(). Throws Error(invalid_file) when the file is truncated or corrupt.
  DecodedImage decode_whole(int64_t channels);

  class Decoder;

 private:
  std::string name_;
  std::unique_ptr<Decoder> decoder_;
};

// As Pillow's resize(): [height, width, channels] of `source`, whose rows lie side by side, into
// `target_shape`, [H, W, same channels]. Equal to Pillow's result within one gray level. Throws
// Error(invalid_argument) when a span does not fit its shape.
void resize_image(std::span<const uint8_t> source, const Shape& source_shape, ResizeFilter filter,
                  std::span<uint8_t> target, const Shape& target_shape);

// Files as they are written by tools and for tests. `shape` is [H, W, C], C 1 or 3. Throw
// Error(invalid_argument) when pixels and shape do not fit.
std::vector<std::byte> encode_jpeg(std::span<const uint8_t> pixels, const Shape& shape, int64_t quality = 95);
std::vector<std::byte> encode_png(std::span<const uint8_t> pixels, const Shape& shape);

}  // namespace tessera::data
