#include "tessera/report/png.h"

#include <vector>

#include <gtest/gtest.h>
#include <zlib.h>

#include "support/expect_error.h"

namespace tessera::report {
namespace {

uint32_t big_endian(std::string_view bytes, size_t offset) {
  uint32_t value = 0;
  for (size_t i = 0; i < 4; ++i) value = value << 8 | static_cast<unsigned char>(bytes[offset + i]);
  return value;
}

// The data of each chunk, its checksum held against it.
std::vector<std::pair<std::string, std::string>> chunks(const std::string& file) {
  std::vector<std::pair<std::string, std::string>> result;
  EXPECT_EQ(file.substr(0, 8), "\x89PNG\r\n\x1a\n");
  for (size_t offset = 8; offset + 12 <= file.size();) {
    const uint32_t length = big_endian(file, offset);
    const std::string checked = file.substr(offset + 4, length + 4);
    EXPECT_EQ(big_endian(file, offset + 8 + length),
              crc32(0, reinterpret_cast<const Bytef*>(checked.data()), static_cast<uInt>(checked.size())));
    result.emplace_back(checked.substr(0, 4), checked.substr(4));
    offset += length + 12;
  }
  return result;
}

TEST(Png, HoldsThePixels) {
  const std::vector<uint8_t> pixels = {1, 2, 3, 250, 251, 252, 7, 8, 9, 0, 128, 255, 5, 5, 5, 6, 6, 6};
  const auto parts = chunks(encode_png(pixels, 3, 2, 3));
  ASSERT_EQ(parts.size(), 3u);
  EXPECT_EQ(parts[0],
            (std::pair<std::string, std::string>("IHDR", {"\0\0\0\x02\0\0\0\x03\x08\x02\0\0\0", 13})));
  EXPECT_EQ(parts[2], (std::pair<std::string, std::string>("IEND", "")));
  std::vector<uint8_t> rows(3 * 7);
  uLongf size = rows.size();
  const std::string& data = parts[1].second;
  ASSERT_EQ(uncompress(rows.data(), &size, reinterpret_cast<const Bytef*>(data.data()), data.size()), Z_OK);
  EXPECT_EQ(rows,
            (std::vector<uint8_t>{0, 1, 2, 3, 250, 251, 252, 0, 7, 8, 9, 0, 128, 255, 0, 5, 5, 5, 6, 6, 6}));
}

TEST(Png, KnowsItsColorTypes) {
  const std::vector<uint8_t> pixels(4);
  EXPECT_EQ(chunks(encode_png({pixels.data(), 1}, 1, 1, 1))[0].second[9], 0);
  EXPECT_EQ(chunks(encode_png({pixels.data(), 2}, 1, 1, 2))[0].second[9], 4);
  EXPECT_EQ(chunks(encode_png({pixels.data(), 3}, 1, 1, 3))[0].second[9], 2);
  EXPECT_EQ(chunks(encode_png({pixels.data(), 4}, 1, 1, 4))[0].second[9], 6);
}

TEST(Png, RefusesOtherShapes) {
  const std::vector<uint8_t> pixels(12);
  EXPECT_ERROR(encode_png(pixels, 2, 2, 5), ErrorCode::invalid_argument, "5 channels");
  EXPECT_ERROR(encode_png(pixels, 0, 2, 3), ErrorCode::invalid_argument, "0x2");
  EXPECT_ERROR(encode_png(pixels, 2, 3, 3), ErrorCode::invalid_argument, "12 bytes", "[2, 3, 3]");
  EXPECT_ERROR(encode_png(pixels, INT64_MAX, INT64_MAX, 4), ErrorCode::invalid_argument, "pixels");
}

TEST(Png, EncodesBase64) {  // RFC 4648, section 10
  EXPECT_EQ(encode_base64(""), "");
  EXPECT_EQ(encode_base64("f"), "Zg==");
  EXPECT_EQ(encode_base64("fo"), "Zm8=");
  EXPECT_EQ(encode_base64("foo"), "Zm9v");
  EXPECT_EQ(encode_base64("foobar"), "Zm9vYmFy");
  EXPECT_EQ(encode_base64("\xff\xfe\xfd"), "//79");
}

}  // namespace
}  // namespace tessera::report
