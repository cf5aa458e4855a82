// PNG through libpng: row by row up to the last one that is wanted.
#include <algorithm>
#include <cstring>

#include <png.h>

#include "tessera/base/error.h"

#include "data/image/decoder.h"
#include "data/image/exif.h"

namespace tessera::data {
namespace {

constexpr png_uint_32 kLongestSide = 1'000'000;
constexpr png_alloc_size_t kLargestChunk = 8 << 20;  // of what is not pixels, decompressed
constexpr png_uint_32 kMostChunks = 256;             // of those that are kept

struct Input {
  std::span<const std::byte> rest;
  char message[256];
};

// libpng's idea of an error: it returns to where its jump was set, over frames that own nothing.
[[noreturn]] void on_error(png_structp png, png_const_charp message) {
  auto* input = static_cast<Input*>(png_get_error_ptr(png));
  std::strncpy(input->message, message, sizeof(input->message) - 1);
  png_longjmp(png, 1);
}

void on_warning(png_structp /*png*/, png_const_charp /*message*/) {}

void on_read(png_structp png, png_bytep target, size_t count) {
  auto* input = static_cast<Input*>(png_get_io_ptr(png));
  if (input->rest.size() < count) png_error(png, "the file is truncated");
  std::memcpy(target, input->rest.data(), count);
  input->rest = input->rest.subspan(count);
}

class PngDecoder : public EncodedImage::Decoder {
 public:
  PngDecoder(std::span<const std::byte> bytes, const std::string& name, const ImageLimits& limits)
      : name_(name), input_{.rest = bytes, .message = {}} {
    png_ = png_create_read_struct(PNG_LIBPNG_VER_STRING, &input_, on_error, on_warning);
    if (png_ != nullptr) header_ = png_create_info_struct(png_);
    if (header_ == nullptr) {
      png_destroy_read_struct(&png_, nullptr, nullptr);
      fail(ErrorCode::out_of_memory, "{}: no memory for a PNG decoder", name);
    }
    try {
      read_info(limits);
    } catch (...) {
      png_destroy_read_struct(&png_, &header_, nullptr);
      throw;
    }
  }
  PngDecoder(const PngDecoder&) = delete;
  PngDecoder& operator=(const PngDecoder&) = delete;
  ~PngDecoder() override { png_destroy_read_struct(&png_, &header_, nullptr); }

  void decode(const WantedPart& wanted, DecodedPart& decoded) override {
    int passes = 1;
    guarded([&] {
      png_set_expand(png_);    // palettes to colors, few bits to eight
      png_set_strip_16(png_);  // the upper byte, as Pillow takes it
      png_set_strip_alpha(png_);
      passes = png_set_interlace_handling(png_);
      png_read_update_info(png_, header_);
    });
    const auto channels = static_cast<int64_t>(png_get_channels(png_, header_));
    const auto stored_height = static_cast<int64_t>(png_get_image_height(png_, header_));
    const auto row_bytes = png_get_rowbytes(png_, header_);
    const Rectangle& part = wanted.part;
    // Of an interlaced image every row is read several times.
    const int64_t first = passes > 1 ? 0 : part.top;
    const int64_t last = passes > 1 ? stored_height : part.top + part.height;
    decoded.pixels.resize(static_cast<size_t>(last - first) * row_bytes);
    decoded.height = last - first;
    decoded.width = static_cast<int64_t>(png_get_image_width(png_, header_));
    decoded.channels = channels;
    decoded.top = static_cast<double>(part.top - first);
    decoded.left = static_cast<double>(part.left);
    decoded.part_height = static_cast<double>(part.height);
    decoded.part_width = static_cast<double>(part.width);
    guarded([&] {
      for (int pass = 0; pass < passes; ++pass) {
        for (int64_t y = 0; y < last; ++y)
          png_read_row(
              png_, decoded.pixels.data() + static_cast<size_t>(std::max<int64_t>(y - first, 0)) * row_bytes,
              nullptr);
      }
    });
  }

 private:
  template <typename Work>
  void guarded(const Work& work) {
    if (setjmp(png_jmpbuf(png_)) == 0) {
      work();
      return;
    }
    fail(ErrorCode::invalid_file, "{}: the PNG file is broken: {}", name_, input_.message);
  }

  void read_info(const ImageLimits& limits) {
    guarded([&] {
      png_set_read_fn(png_, &input_, on_read);
      png_set_user_limits(png_, kLongestSide, kLongestSide);
      png_set_chunk_malloc_max(png_, kLargestChunk);
      png_set_chunk_cache_max(png_, kMostChunks);
      png_read_info(png_, header_);
    });
    info.format = ImageFormat::png;
    info.channels = png_get_channels(png_, header_);
    info.bits = png_get_bit_depth(png_, header_);
    info.progressive = png_get_interlace_type(png_, header_) != PNG_INTERLACE_NONE;
    const int color = png_get_color_type(png_, header_);
    if (color == PNG_COLOR_TYPE_PALETTE)
      info.channels = png_get_valid(png_, header_, PNG_INFO_tRNS) != 0 ? 4 : 3;
    png_bytep exif = nullptr;
    png_uint_32 exif_bytes = 0;
    int64_t orientation = 1;
    if (png_get_eXIf_1(png_, header_, &exif_bytes, &exif) != 0)
      orientation = exif_orientation(std::as_bytes(std::span(exif, exif_bytes)));
    set_extents(info, png_get_image_height(png_, header_), png_get_image_width(png_, header_), orientation,
                limits, name_);
  }

  std::string name_;
  Input input_;
  png_structp png_ = nullptr;
  png_infop header_ = nullptr;
};

void append(png_structp png, png_bytep bytes, size_t count) {
  auto* target = static_cast<std::vector<std::byte>*>(png_get_io_ptr(png));
  const auto added = std::as_bytes(std::span(bytes, count));
  target->insert(target->end(), added.begin(), added.end());
}

}  // namespace

std::unique_ptr<EncodedImage::Decoder> open_png(std::span<const std::byte> bytes, const std::string& name,
                                                const ImageLimits& limits) {
  return std::make_unique<PngDecoder>(bytes, name, limits);
}

std::vector<std::byte> encode_png(std::span<const uint8_t> pixels, const Shape& shape) {
  require(shape.size() == 3 && (shape[2] == 1 || shape[2] == 3) && shape[0] > 0 && shape[1] > 0 &&
              std::max(shape[0], shape[1]) <= int64_t{kLongestSide} &&
              std::ssize(pixels) == element_count(shape),
          ErrorCode::invalid_argument,
          "{} values of shape {} cannot be a PNG file, expected [H, W, 1 or 3] up to {} pixels a side",
          pixels.size(), to_string(shape), kLongestSide);
  Input input{};
  std::vector<std::byte> bytes;
  png_structp png = png_create_write_struct(PNG_LIBPNG_VER_STRING, &input, on_error, on_warning);
  png_infop header = png != nullptr ? png_create_info_struct(png) : nullptr;
  if (header == nullptr || setjmp(png_jmpbuf(png)) != 0) {
    png_destroy_write_struct(&png, &header);
    fail(ErrorCode::internal, "an image could not be written as PNG: {}", input.message);
  }
  png_set_write_fn(png, &bytes, append, nullptr);
  png_set_IHDR(png, header, static_cast<png_uint_32>(shape[1]), static_cast<png_uint_32>(shape[0]), 8,
               shape[2] == 1 ? PNG_COLOR_TYPE_GRAY : PNG_COLOR_TYPE_RGB, PNG_INTERLACE_NONE,
               PNG_COMPRESSION_TYPE_DEFAULT, PNG_FILTER_TYPE_DEFAULT);
  png_write_info(png, header);
  for (int64_t y = 0; y < shape[0]; ++y) png_write_row(png, pixels.data() + y * shape[1] * shape[2]);
  png_write_end(png, header);
  png_destroy_write_struct(&png, &header);
  return bytes;
}

}  // namespace tessera::data
