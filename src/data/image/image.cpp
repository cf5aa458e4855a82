#include "tessera/data/image.h"

#include <algorithm>
#include <cmath>
#include <cstring>

#include "tessera/base/error.h"

#include "data/image/decoder.h"
#include "data/image/orientation.h"
#include "data/image/resize.h"

namespace tessera::data {
namespace {

// Memory of a thread that decodes image after image.
struct Workspace {
  DecodedPart decoded;
  std::vector<uint8_t> upright;
  std::vector<uint8_t> resized;
  ResizeScratch resize;
};

Workspace& workspace() {
  thread_local Workspace own;
  return own;
}

bool begins_with(std::span<const std::byte> bytes, std::string_view text, size_t offset = 0) {
  return bytes.size() >= offset + text.size() &&
         std::memcmp(bytes.data() + offset, text.data(), text.size()) == 0;
}

std::unique_ptr<EncodedImage::Decoder> open_decoder(std::span<const std::byte> bytes, const std::string& name,
                                                    const ImageLimits& limits) {
  if (begins_with(bytes, "\xFF\xD8\xFF")) return open_jpeg(bytes, name, limits);
  if (begins_with(bytes, "\x89PNG\r\n\x1A\n")) return open_png(bytes, name, limits);
  if (begins_with(bytes, "RIFF") && begins_with(bytes, "WEBP", 8)) return open_webp(bytes, name, limits);
  fail(ErrorCode::invalid_file, "{}: {}", name,
       bytes.empty() ? "the file is empty" : "its first bytes are those of no JPEG, PNG or WebP file");
}

// The part of the decoded pixels alone, where it begins and ends between pixels: what lies around it must not
// be looked at, since the crop is resized as if it were all.
PixelView cut(const DecodedPart& decoded, Box& box) {
  const auto top = static_cast<int64_t>(std::floor(decoded.top));
  const auto left = static_cast<int64_t>(std::floor(decoded.left));
  const auto bottom = static_cast<int64_t>(std::ceil(decoded.top + decoded.part_height));
  const auto right = static_cast<int64_t>(std::ceil(decoded.left + decoded.part_width));
  const int64_t stride = decoded.width * decoded.channels;
  box = {.top = decoded.top - static_cast<double>(top),
         .left = decoded.left - static_cast<double>(left),
         .height = decoded.part_height,
         .width = decoded.part_width};
  return {.data = decoded.pixels.data() + top * stride + left * decoded.channels,
          .height = std::min(bottom, decoded.height) - top,
          .width = std::min(right, decoded.width) - left,
          .channels = decoded.channels,
          .stride = stride};
}

// ITU-R BT.601, as Pillow's convert("L").
uint8_t gray_of(const uint8_t* color) {
  return static_cast<uint8_t>((color[0] * 19595 + color[1] * 38470 + color[2] * 7471 + 0x8000) >> 16);
}

void convert_channels(const std::vector<uint8_t>& source, int64_t channels, std::span<uint8_t> target) {
  if (channels == 1) {
    for (size_t i = 0; i < source.size(); ++i)
      std::fill_n(target.begin() + static_cast<int64_t>(3 * i), 3, source[i]);
  } else {
    for (size_t i = 0; i < target.size(); ++i) target[i] = gray_of(source.data() + 3 * i);
  }
}

// Into the pixels of the result.
void resize_and_convert(const PixelView& view, const Box& box, const DecodeOptions& options,
                        std::span<uint8_t> pixels) {
  Workspace& own = workspace();
  const bool direct = view.channels == options.channels;
  if (!direct) own.resized.resize(static_cast<size_t>(options.height * options.width * view.channels));
  resize(view, box, options.filter, options.mirrored, options.height, options.width,
         direct ? pixels : std::span(own.resized), own.resize);
  if (!direct) convert_channels(own.resized, view.channels, pixels);
}

// The part that is asked for, if it and the result fit.
Rectangle check_part(const DecodeOptions& options, int64_t height, int64_t width, const std::string& name,
                     std::span<const uint8_t> pixels) {
  const auto code = ErrorCode::invalid_argument;
  const Rectangle crop = options.crop.value_or(Rectangle{.height = height, .width = width});
  require(crop.top >= 0 && crop.left >= 0 && crop.height > 0 && crop.width > 0 && crop.height <= height &&
              crop.width <= width && crop.top <= height - crop.height && crop.left <= width - crop.width,
          code, "{}: a crop of {}x{} pixels at column {}, row {} is not inside the image of {}x{}", name,
          crop.width, crop.height, crop.left, crop.top, width, height);
  require(options.channels == 1 || options.channels == 3, code, "an image of {} channels, expected 1 or 3",
          options.channels);
  require(options.height > 0 && options.width > 0 &&
              options.height <= std::ssize(pixels) / options.width / options.channels &&
              std::ssize(pixels) == options.height * options.width * options.channels,
          code, "{} bytes for {}x{} pixels of {} channels", pixels.size(), options.width, options.height,
          options.channels);
  return crop;
}

}  // namespace

std::string_view format_name(ImageFormat format) {
  constexpr std::string_view kNames[] = {"jpeg", "png", "webp"};
  return kNames[static_cast<size_t>(format)];
}

void set_extents(ImageInfo& info, int64_t stored_height, int64_t stored_width, int64_t orientation,
                 const ImageLimits& limits, const std::string& name) {
  require(stored_height > 0 && stored_width > 0, ErrorCode::invalid_file, "{}: an image of {}x{} pixels",
          name, stored_width, stored_height);
  require(stored_height <= limits.pixels / stored_width, ErrorCode::invalid_file,
          "{}: {}x{} pixels are more than the {} that an image may have", name, stored_width, stored_height,
          limits.pixels);
  info.height = is_transposed(orientation) ? stored_width : stored_height;
  info.width = is_transposed(orientation) ? stored_height : stored_width;
  info.orientation = orientation;
}

EncodedImage::EncodedImage(std::span<const std::byte> bytes, const std::string& name,
                           const ImageLimits& limits)
    : name_(name), decoder_(open_decoder(bytes, name, limits)) {}
EncodedImage::EncodedImage(EncodedImage&&) noexcept = default;
EncodedImage& EncodedImage::operator=(EncodedImage&&) noexcept = default;
EncodedImage::~EncodedImage() = default;

const ImageInfo& EncodedImage::info() const {
  return decoder_->info;
}

void EncodedImage::decode(const DecodeOptions& options, std::span<uint8_t> pixels) {
  const ImageInfo& image = info();
  const Rectangle crop = check_part(options, image.height, image.width, name_, pixels);
  const bool transposed = is_transposed(image.orientation);
  Workspace& own = workspace();
  decoder_->decode({.part = stored_part(crop, image.orientation, transposed ? image.width : image.height,
                                        transposed ? image.height : image.width),
                    .height = transposed ? options.width : options.height,
                    .width = transposed ? options.height : options.width,
                    .gray = options.channels == 1,
                    .scaled = options.scaled},
                   own.decoded);
  turn_upright(own.decoded, image.orientation, own.upright);
  Box box;
  const PixelView view = cut(own.decoded, box);
  resize_and_convert(view, box, options, pixels);
}

DecodedImage EncodedImage::decode_whole(int64_t channels) {
  const ImageInfo& image = info();
  const Rectangle all{.height = image.height, .width = image.width};
  const bool transposed = is_transposed(image.orientation);
  const int64_t stored_height = transposed ? image.width : image.height;
  const int64_t stored_width = transposed ? image.height : image.width;
  Workspace& own = workspace();
  decoder_->decode({.part = stored_part(all, image.orientation, stored_height, stored_width),
                    .height = stored_height,
                    .width = stored_width,
                    .gray = channels == 1,
                    .scaled = false},
                   own.decoded);
  turn_upright(own.decoded, image.orientation, own.upright);
  Box box;
  const PixelView view = cut(own.decoded, box);
  DecodedImage whole{.height = view.height, .width = view.width, .channels = view.channels};
  const int64_t row = view.width * view.channels;
  whole.pixels.reserve(static_cast<size_t>(view.height * row));
  for (int64_t y = 0; y < view.height; ++y)
    whole.pixels.insert(whole.pixels.end(), view.data + y * view.stride, view.data + y * view.stride + row);
  return whole;
}

void cut_image(const DecodedImage& image, const DecodeOptions& options, std::span<uint8_t> pixels) {
  const Rectangle crop = check_part(options, image.height, image.width, "a decoded image", pixels);
  const int64_t stride = image.width * image.channels;
  const PixelView view{.data = image.pixels.data() + crop.top * stride + crop.left * image.channels,
                       .height = crop.height,
                       .width = crop.width,
                       .channels = image.channels,
                       .stride = stride};
  resize_and_convert(view,
                     {.height = static_cast<double>(crop.height), .width = static_cast<double>(crop.width)},
                     options, pixels);
}

void resize_image(std::span<const uint8_t> source, const Shape& source_shape, ResizeFilter filter,
                  std::span<uint8_t> target, const Shape& target_shape) {
  const auto fits = [](size_t values, const Shape& shape) {
    return shape.size() == 3 && *std::ranges::min_element(shape) > 0 &&
           static_cast<int64_t>(values) == element_count(shape);
  };
  require(fits(source.size(), source_shape) && fits(target.size(), target_shape) &&
              source_shape[2] == target_shape[2],
          ErrorCode::invalid_argument, "{} values of shape {} cannot be resized to {} of {}", source.size(),
          to_string(source_shape), target.size(), to_string(target_shape));
  const PixelView view{.data = source.data(),
                       .height = source_shape[0],
                       .width = source_shape[1],
                       .channels = source_shape[2],
                       .stride = source_shape[1] * source_shape[2]};
  ResizeScratch scratch;
  resize(view, {.height = static_cast<double>(view.height), .width = static_cast<double>(view.width)}, filter,
         false, target_shape[0], target_shape[1], target, scratch);
}

}  // namespace tessera::data
