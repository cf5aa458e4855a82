// JPEG through libjpeg-turbo: only the rows and blocks that the wanted part needs.
#include <algorithm>
#include <csetjmp>
#include <cstdio>
#include <cstring>
#include <limits>

#include <jerror.h>
#include <jpeglib.h>

#include "tessera/base/error.h"

#include "data/image/decoder.h"
#include "data/image/exif.h"
#include "data/image/inks.h"

namespace tessera::data {
namespace {

constexpr int kExifMarker = JPEG_APP0 + 1;
constexpr unsigned kLongestMarker = 0xFFFF;
constexpr std::string_view kExifName{"Exif\0\0", 6};
// A progressive file of many scans costs the time of that many images; real ones have about ten.
constexpr int kMostScans = 200;
// Columns beside the part that chroma upsampling looks at, in stored pixels.
constexpr int64_t kUpsamplingMargin = 4;

// libjpeg's idea of an error: it returns to where jump was set, over frames that own nothing.
struct Faults {
  jpeg_error_mgr manager;
  std::jmp_buf jump;
  char message[JMSG_LENGTH_MAX];
};

[[noreturn]] void on_error(j_common_ptr common) {
  auto* faults = reinterpret_cast<Faults*>(common->err);
  faults->manager.format_message(common, faults->message);
  std::longjmp(faults->jump, 1);
}

// Of the warnings only the end of a file before its image's is more than viewers show without a word.
void on_message(j_common_ptr common, int level) {
  if (level < 0 && common->err->msg_code == JWRN_JPEG_EOF) on_error(common);
}

void on_progress(j_common_ptr common) {
  if (common->is_decompressor == 0) return;
  auto* decompress = reinterpret_cast<j_decompress_ptr>(common);
  if (decompress->input_scan_number > kMostScans) ERREXIT(common, JERR_BAD_PROGRESSION);
}

// Half, a quarter or an eighth of the part must still be as large as what is made of it.
unsigned scale_of(const WantedPart& wanted) {
  unsigned eighths = 8;
  while (wanted.scaled && eighths > 1 && wanted.part.height * (eighths / 2) >= wanted.height * 8 &&
         wanted.part.width * (eighths / 2) >= wanted.width * 8)
    eighths /= 2;
  return eighths;
}

class JpegDecoder : public EncodedImage::Decoder {
 public:
  JpegDecoder(std::span<const std::byte> bytes, const std::string& name, const ImageLimits& limits)
      : name_(name) {
    jpeg_.err = jpeg_std_error(&faults_.manager);
    faults_.manager.error_exit = on_error;
    faults_.manager.emit_message = on_message;
    progress_.progress_monitor = on_progress;
    guarded([&] {
      jpeg_create_decompress(&jpeg_);
      jpeg_.progress = &progress_;
      jpeg_mem_src(&jpeg_, reinterpret_cast<const unsigned char*>(bytes.data()), bytes.size());
      jpeg_save_markers(&jpeg_, kExifMarker, kLongestMarker);
      jpeg_read_header(&jpeg_, TRUE);
    });
    try {
      read_info(limits);
    } catch (...) {
      jpeg_destroy_decompress(&jpeg_);
      throw;
    }
  }
  JpegDecoder(const JpegDecoder&) = delete;
  JpegDecoder& operator=(const JpegDecoder&) = delete;
  ~JpegDecoder() override { jpeg_destroy_decompress(&jpeg_); }

  void decode(const WantedPart& wanted, DecodedPart& decoded) override {
    choose_output(wanted);
    guarded([&] { jpeg_start_decompress(&jpeg_); });
    const Rectangle area = choose_area(wanted, decoded);
    const int64_t components = jpeg_.output_components;
    decoded.height = area.height;
    decoded.width = area.width;
    decoded.channels = std::min<int64_t>(components, 3);
    decoded.pixels.resize(static_cast<size_t>(area.height * area.width * components));
    guarded([&] {
      if (area.top > 0) jpeg_skip_scanlines(&jpeg_, static_cast<JDIMENSION>(area.top));
      JSAMPROW row = decoded.pixels.data();
      for (const JSAMPROW end = row + decoded.pixels.size(); row < end; row += area.width * components)
        jpeg_read_scanlines(&jpeg_, &row, 1);
      jpeg_abort_decompress(&jpeg_);
    });
    if (components == 4) {
      inks_to_rgb(decoded.pixels, jpeg_.saw_Adobe_marker != 0);
      decoded.pixels.resize(static_cast<size_t>(area.height * area.width * 3));
    }
  }

 private:
  // Runs `work`, whose frames own nothing. An error of libjpeg ends the decompressor.
  template <typename Work>
  void guarded(const Work& work) {
    if (setjmp(faults_.jump) == 0) {
      work();
      return;
    }
    const std::string message = faults_.message;
    jpeg_abort(reinterpret_cast<j_common_ptr>(&jpeg_));
    if (!opened_) jpeg_destroy_decompress(&jpeg_);  // its destructor will not run
    fail(ErrorCode::invalid_file, "{}: the JPEG file is broken: {}", name_, message);
  }

  void read_info(const ImageLimits& limits) {
    info.format = ImageFormat::jpeg;
    info.channels = jpeg_.num_components;
    info.bits = jpeg_.data_precision;
    info.progressive = jpeg_.progressive_mode != 0;
    info.ycbcr = jpeg_.jpeg_color_space == JCS_YCbCr;
    int64_t orientation = 1;
    for (jpeg_saved_marker_ptr marker = jpeg_.marker_list; marker != nullptr; marker = marker->next) {
      const std::string_view text(reinterpret_cast<const char*>(marker->data), marker->data_length);
      if (!text.starts_with(kExifName)) continue;
      orientation = exif_orientation(
          std::as_bytes(std::span(marker->data, marker->data_length)).subspan(kExifName.size()));
      break;
    }
    set_extents(info, jpeg_.image_height, jpeg_.image_width, orientation, limits, name_);
    const bool known = jpeg_.jpeg_color_space != JCS_UNKNOWN &&
                       (info.channels == 1 || info.channels == 3 || info.channels == 4);
    require(known, ErrorCode::invalid_file,
            "{}: a JPEG file of {} channels, expected 1 (gray), 3 (color) or 4 (inks)", name_, info.channels);
    opened_ = true;
  }

  void choose_output(const WantedPart& wanted) {
    const bool from_brightness =
        jpeg_.jpeg_color_space == JCS_GRAYSCALE || (wanted.gray && jpeg_.jpeg_color_space == JCS_YCbCr);
    jpeg_.out_color_space = info.channels == 4 ? JCS_CMYK : from_brightness ? JCS_GRAYSCALE : JCS_RGB;
    jpeg_.scale_num = scale_of(wanted);
    jpeg_.scale_denom = 8;
  }

  // Cuts the rows that will be read to whole blocks around the part, and says where the part lies in them. In
  // output pixels.
  Rectangle choose_area(const WantedPart& wanted, DecodedPart& decoded) {
    const double scale = jpeg_.scale_num / 8.0;
    const auto begin = [&](int64_t place) {
      return static_cast<int64_t>(scale * static_cast<double>(place));
    };
    const auto end = [&](int64_t place, JDIMENSION most) {
      return std::min<int64_t>(begin(place) + (begin(place) < scale * static_cast<double>(place) ? 1 : 0),
                               most);
    };
    const Rectangle& part = wanted.part;
    Rectangle area{.top = begin(part.top), .width = jpeg_.output_width};
    area.height = end(part.top + part.height, jpeg_.output_height) - area.top;
    const int64_t left = std::max<int64_t>(begin(part.left) - kUpsamplingMargin, 0);
    const int64_t right =
        std::min<int64_t>(end(part.left + part.width, jpeg_.output_width) + kUpsamplingMargin, area.width);
    if (right - left < area.width) {
      auto block_left = static_cast<JDIMENSION>(left);
      auto block_width = static_cast<JDIMENSION>(right - left);
      guarded([&] { jpeg_crop_scanline(&jpeg_, &block_left, &block_width); });
      area.left = block_left;
      area.width = block_width;
    }
    decoded.top = scale * static_cast<double>(part.top) - static_cast<double>(area.top);
    decoded.left = scale * static_cast<double>(part.left) - static_cast<double>(area.left);
    decoded.part_height = scale * static_cast<double>(part.height);
    decoded.part_width = scale * static_cast<double>(part.width);
    // The last block of a scaled image may be rounded down.
    decoded.part_height = std::min(decoded.part_height, static_cast<double>(area.height) - decoded.top);
    decoded.part_width = std::min(decoded.part_width, static_cast<double>(area.width) - decoded.left);
    return area;
  }

  std::string name_;
  bool opened_ = false;
  Faults faults_{};
  jpeg_progress_mgr progress_{};
  jpeg_decompress_struct jpeg_{};
};

}  // namespace

std::unique_ptr<EncodedImage::Decoder> open_jpeg(std::span<const std::byte> bytes, const std::string& name,
                                                 const ImageLimits& limits) {
  return std::make_unique<JpegDecoder>(bytes, name, limits);
}

std::vector<std::byte> encode_jpeg(std::span<const uint8_t> pixels, const Shape& shape, int64_t quality) {
  const auto code = ErrorCode::invalid_argument;
  require(shape.size() == 3 && (shape[2] == 1 || shape[2] == 3) && shape[0] > 0 && shape[1] > 0 &&
              std::max(shape[0], shape[1]) <= JPEG_MAX_DIMENSION &&
              std::ssize(pixels) == element_count(shape),
          code, "{} values of shape {} cannot be a JPEG file, expected [H, W, 1 or 3] up to {} pixels a side",
          pixels.size(), to_string(shape), JPEG_MAX_DIMENSION);
  require(quality >= 1 && quality <= 100, code, "the quality of a JPEG file is {}, expected 1 to 100",
          quality);
  jpeg_compress_struct jpeg{};
  Faults faults{};
  jpeg.err = jpeg_std_error(&faults.manager);
  faults.manager.error_exit = on_error;
  unsigned char* memory = nullptr;
  unsigned long size = 0;
  if (setjmp(faults.jump) != 0) {
    jpeg_destroy_compress(&jpeg);
    std::free(memory);
    fail(ErrorCode::internal, "an image could not be written as JPEG: {}", faults.message);
  }
  jpeg_create_compress(&jpeg);
  jpeg_mem_dest(&jpeg, &memory, &size);
  jpeg.image_height = static_cast<JDIMENSION>(shape[0]);
  jpeg.image_width = static_cast<JDIMENSION>(shape[1]);
  jpeg.input_components = static_cast<int>(shape[2]);
  jpeg.in_color_space = shape[2] == 1 ? JCS_GRAYSCALE : JCS_RGB;
  jpeg_set_defaults(&jpeg);
  jpeg_set_quality(&jpeg, static_cast<int>(quality), TRUE);
  jpeg.optimize_coding = TRUE;
  jpeg_start_compress(&jpeg, TRUE);
  for (int64_t y = 0; y < shape[0]; ++y) {
    // libjpeg does not write to it.
    auto* row = const_cast<JSAMPROW>(pixels.data() + y * shape[1] * shape[2]);
    jpeg_write_scanlines(&jpeg, &row, 1);
  }
  jpeg_finish_compress(&jpeg);
  const auto* first = reinterpret_cast<const std::byte*>(memory);
  std::vector<std::byte> bytes(first, first + size);
  jpeg_destroy_compress(&jpeg);
  std::free(memory);
  return bytes;
}

}  // namespace tessera::data
