#include "tessera/report/png.h"

#include <algorithm>

#include <zlib.h>

#include "tessera/base/error.h"

namespace tessera::report {
namespace {

constexpr int64_t kMaximumExtent = 1 << 16;

void put_big_endian(std::string& target, uint32_t value) {
  for (int shift = 24; shift >= 0; shift -= 8) target += static_cast<char>(value >> shift);
}

// Length, type, data, checksum of type and data.
void put_chunk(std::string& target, std::string_view type, std::string_view data) {
  put_big_endian(target, static_cast<uint32_t>(data.size()));
  const size_t start = target.size();
  target += type;
  target += data;
  const auto* checked = reinterpret_cast<const Bytef*>(target.data() + start);
  put_big_endian(target, static_cast<uint32_t>(crc32(0, checked, static_cast<uInt>(target.size() - start))));
}

std::string compress(const std::string& bytes) {
  uLongf size = compressBound(static_cast<uLong>(bytes.size()));
  std::string result(size, '\0');
  const int status =
      compress2(reinterpret_cast<Bytef*>(result.data()), &size, reinterpret_cast<const Bytef*>(bytes.data()),
                static_cast<uLong>(bytes.size()), Z_BEST_COMPRESSION);
  require(status == Z_OK, ErrorCode::internal, "zlib could not compress a picture: status {}", status);
  result.resize(size);
  return result;
}

}  // namespace

std::string encode_png(std::span<const uint8_t> pixels, int64_t height, int64_t width, int64_t channels) {
  constexpr char kColorTypes[] = {0, 4, 2, 6};  // grey, grey and alpha, RGB, RGBA
  require(channels >= 1 && channels <= 4, ErrorCode::invalid_argument,
          "a picture of {} channels, expected 1 to 4", channels);
  require(height > 0 && width > 0 && height <= kMaximumExtent && width <= kMaximumExtent,
          ErrorCode::invalid_argument, "a picture of {}x{} pixels, expected 1 to {}", height, width,
          kMaximumExtent);
  const auto row_bytes = static_cast<size_t>(width * channels);
  require(pixels.size() == row_bytes * static_cast<size_t>(height), ErrorCode::invalid_argument,
          "{} bytes for a picture of [{}, {}, {}]", pixels.size(), height, width, channels);

  std::string header;
  put_big_endian(header, static_cast<uint32_t>(width));
  put_big_endian(header, static_cast<uint32_t>(height));
  header += {8, kColorTypes[channels - 1], 0, 0,
             0};  // bits per sample, color type, deflate, filters, not interlaced

  std::string rows;
  rows.reserve(pixels.size() + static_cast<size_t>(height));
  for (size_t offset = 0; offset < pixels.size(); offset += row_bytes) {
    rows += '\0';  // the row is not filtered: thumbnails gain little by it
    rows.append(reinterpret_cast<const char*>(pixels.data() + offset), row_bytes);
  }

  std::string file = "\x89PNG\r\n\x1a\n";
  put_chunk(file, "IHDR", header);
  put_chunk(file, "IDAT", compress(rows));
  put_chunk(file, "IEND", "");
  return file;
}

std::string encode_base64(std::string_view bytes) {
  constexpr std::string_view kDigits = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
  std::string result;
  result.reserve((bytes.size() + 2) / 3 * 4);
  for (size_t i = 0; i < bytes.size(); i += 3) {
    const size_t count = std::min<size_t>(3, bytes.size() - i);
    uint32_t word = 0;
    for (size_t j = 0; j < 3; ++j)
      word = word << 8 | (j < count ? static_cast<unsigned char>(bytes[i + j]) : 0u);
    for (size_t j = 0; j < 4; ++j) result += j <= count ? kDigits[word >> (18 - 6 * j) & 63] : '=';
  }
  return result;
}

}  // namespace tessera::report
