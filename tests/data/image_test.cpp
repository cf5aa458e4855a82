#include "tessera/data/image.h"

#include <algorithm>
#include <cstdlib>

#include <gtest/gtest.h>

#include "tessera/base/random.h"
#include "tessera/data/safetensors.h"

#include "support/expect_error.h"
#include "test_folder.h"

namespace tessera::data {
namespace {

const SafetensorsFile& golden() {
  static const SafetensorsFile file =
      SafetensorsFile::open(std::filesystem::path(TESSERA_TEST_FOLDER) / "golden" / "images.safetensors");
  return file;
}

std::vector<std::byte> bytes_of(const Tensor& tensor) {
  const auto* first = static_cast<const std::byte*>(tensor.raw());
  return {first, first + tensor.bytes()};
}

std::vector<std::byte> golden_file(const std::string& name) {
  return bytes_of(golden().read("file/" + name));
}

std::vector<std::string> golden_files() {
  std::vector<std::string> names;
  for (const auto& [name, entry] : golden().entries())
    if (name.starts_with("file/")) names.push_back(name.substr(5));
  return names;
}

std::vector<std::string> split(const std::string& text, char separator) {
  std::vector<std::string> parts{""};
  for (const char c : text) {
    if (c == separator) {
      parts.emplace_back();
    } else {
      parts.back() += c;
    }
  }
  return parts;
}

ResizeFilter filter_of(const std::string& name) {
  const std::vector<std::string> names{"nearest", "area", "bilinear", "bicubic"};
  return static_cast<ResizeFilter>(std::ranges::find(names, name) - names.begin());
}

int largest_difference(std::span<const uint8_t> a, std::span<const uint8_t> b) {
  EXPECT_EQ(a.size(), b.size());
  int largest = 0;
  for (size_t i = 0; i < std::min(a.size(), b.size()); ++i)
    largest = std::max(largest, std::abs(a[i] - b[i]));
  return largest;
}

// Both round to whole gray levels after each axis.
constexpr int kOneLevel = 1;

TEST(ResizeImage, IsPillows) {
  const Tensor source = golden().read("source");
  int compared = 0;
  for (const auto& [name, entry] : golden().entries()) {
    if (!name.starts_with("resized/")) continue;
    const Tensor expected = golden().read(name);
    std::vector<uint8_t> pixels(expected.bytes());
    resize_image(source.data<uint8_t>(), source.shape(), filter_of(split(name, '/')[1]), pixels,
                 expected.shape());
    EXPECT_LE(largest_difference(pixels, expected.data<uint8_t>()), kOneLevel) << name;
    ++compared;
  }
  EXPECT_EQ(compared, 24);
}

// What decoders differ by, beside the resize: Pillow weighs color of full range to gray, libjpeg takes the
// brightness as it is stored.
int decoder_bound(const std::string& file, bool gray) {
  if (file.ends_with(".jpg")) return gray ? 2 : 1;
  return 1;
}

TEST(EncodedImage, IsDecodedAsByPillow) {
  int compared = 0;
  for (const auto& [name, entry] : golden().entries()) {
    const std::vector<std::string> words = split(name, '/');
    if (words[0] != "pixels" && words[0] != "gray") continue;
    const Tensor expected = golden().read(name);
    const std::vector<std::byte> file = golden_file(words[1]);
    const std::vector<std::string> crop = split(words[4], ',');
    DecodeOptions options{
        .crop = Rectangle{std::stoll(crop[0]), std::stoll(crop[1]), std::stoll(crop[2]), std::stoll(crop[3])},
        .height = expected.shape()[0],
        .width = expected.shape()[1],
        .channels = expected.shape()[2],
        .filter = filter_of(words[2]),
        .mirrored = words[3] == "1",
        .scaled = false};
    std::vector<uint8_t> pixels(expected.bytes());
    EncodedImage(file, words[1]).decode(options, pixels);
    EXPECT_LE(largest_difference(pixels, expected.data<uint8_t>()),
              kOneLevel + decoder_bound(words[1], words[0] == "gray"))
        << name;
    // An image that was decoded whole and is cut later.
    std::vector<uint8_t> cut(pixels.size());
    cut_image(EncodedImage(file, words[1]).decode_whole(options.channels), options, cut);
    EXPECT_EQ(cut, pixels) << name;
    ++compared;
  }
  EXPECT_GT(compared, 100);
}

std::vector<uint8_t> decoded(const std::vector<std::byte>& file, const Rectangle& crop, int64_t height,
                             int64_t width, bool scaled = false,
                             ResizeFilter filter = ResizeFilter::nearest) {
  std::vector<uint8_t> pixels(static_cast<size_t>(height * width * 3));
  EncodedImage(file, "file")
      .decode({.crop = crop, .height = height, .width = width, .filter = filter, .scaled = scaled}, pixels);
  return pixels;
}

// Decoding only what a crop needs must not change it: blocks, chroma of neighbors, rows that were skipped.
TEST(EncodedImage, APartIsThatOfTheWhole) {
  const Random random(3);
  uint64_t draw = 0;
  for (const std::string& name : golden_files()) {
    const std::vector<std::byte> file = golden_file(name);
    const ImageInfo info = EncodedImage(file, name).info();
    const std::vector<uint8_t> whole =
        decoded(file, {.height = info.height, .width = info.width}, info.height, info.width);
    for (int i = 0; i < 12; ++i) {
      const auto below = [&](int64_t bound) {
        return static_cast<int64_t>(random.below(draw++, static_cast<uint64_t>(bound)));
      };
      Rectangle crop{.height = 1 + below(info.height), .width = 1 + below(info.width)};
      crop.top = below(info.height - crop.height + 1);
      crop.left = below(info.width - crop.width + 1);
      const std::vector<uint8_t> part = decoded(file, crop, crop.height, crop.width);
      std::vector<uint8_t> expected;
      for (int64_t y = 0; y < crop.height; ++y) {
        const auto row = whole.begin() + ((crop.top + y) * info.width + crop.left) * 3;
        expected.insert(expected.end(), row, row + crop.width * 3);
      }
      ASSERT_EQ(part, expected) << name << " " << crop.top << "," << crop.left << " " << crop.height << "x"
                                << crop.width;
    }
  }
}

// Fewer coefficients make a picture of fewer pixels that is not the average of the larger one's, but close.
TEST(EncodedImage, AScaledDecodeIsCloseToTheFullOne) {
  const std::vector<std::byte> file = golden_file("large.jpg");
  for (const int64_t size : {100, 50, 25, 9}) {
    const Rectangle crop{.top = 3, .left = 40, .height = 201, .width = 203};
    const std::vector<uint8_t> full = decoded(file, crop, size, size, false, ResizeFilter::bilinear);
    const std::vector<uint8_t> fast = decoded(file, crop, size, size, true, ResizeFilter::bilinear);
    EXPECT_NE(full, fast);
    double sum = 0;
    for (size_t i = 0; i < full.size(); ++i) sum += std::abs(full[i] - fast[i]);
    EXPECT_LT(sum / static_cast<double>(full.size()), 2.0) << size;
  }
}

TEST(EncodedImage, TellsWhatTheHeaderSays) {
  const auto info = [](const std::string& name) { return EncodedImage(golden_file(name), name).info(); };
  EXPECT_EQ(info("420.jpg").height, 53);
  EXPECT_EQ(info("420.jpg").width, 70);
  EXPECT_EQ(info("exif6.jpg").height, 70);
  EXPECT_EQ(info("exif6.jpg").orientation, 6);
  EXPECT_EQ(info("turned.png").orientation, 8);
  EXPECT_EQ(info("turned.webp").orientation, 6);
  EXPECT_TRUE(info("progressive.jpg").progressive);
  EXPECT_TRUE(info("interlaced.png").progressive);
  EXPECT_EQ(info("inks.jpg").channels, 4);
  EXPECT_EQ(info("gray.jpg").channels, 1);
  EXPECT_EQ(info("deep_color.png").bits, 16);
  EXPECT_EQ(info("lossless.webp").channels, 4);
  EXPECT_EQ(info("lossy.webp").format, ImageFormat::webp);
}

TEST(EncodedImage, RefusesWhatIsNoImage) {
  const auto open = [](const std::vector<std::byte>& bytes) { EncodedImage(bytes, "a/b.jpg"); };
  EXPECT_ERROR(open({}), ErrorCode::invalid_file, "a/b.jpg", "empty");
  EXPECT_ERROR(open(bytes_of(golden().read("source"))), ErrorCode::invalid_file, "a/b.jpg", "no JPEG, PNG");
  for (const std::string& name : golden_files()) {
    const std::vector<std::byte> file = golden_file(name);
    EXPECT_ERROR(EncodedImage(file, name, {.pixels = 100}), ErrorCode::invalid_file, name,
                 "more than the 100");
    EXPECT_ERROR(open({file.begin(), file.begin() + 20}), ErrorCode::invalid_file, "a/b.jpg");
    const std::vector<std::byte> most(file.begin(), file.begin() + std::ssize(file) * 3 / 4);
    std::vector<uint8_t> pixels(64 * 3);
    EXPECT_ERROR(EncodedImage(most, name).decode({.height = 8, .width = 8}, pixels), ErrorCode::invalid_file,
                 name);
  }
}

TEST(EncodedImage, RefusesWhatDoesNotFit) {
  const std::vector<std::byte> file = golden_file("420.jpg");
  const auto code = ErrorCode::invalid_argument;
  EXPECT_ERROR(decoded(file, {.top = 1, .height = 53, .width = 5}, 8, 8), code, "70x53");
  EXPECT_ERROR(decoded(file, {.left = -1, .height = 5, .width = 5}, 8, 8), code, "column -1");
  EXPECT_ERROR(decoded(file, {.height = 5, .width = 0}, 8, 8), code, "0x5");
  std::vector<uint8_t> pixels(10);
  EXPECT_ERROR(EncodedImage(file, "x").decode({.height = 2, .width = 2}, pixels), code, "10 bytes");
  EXPECT_ERROR(EncodedImage(file, "x").decode({.height = 2, .width = 2, .channels = 2}, pixels), code,
               "2 channels");
  EXPECT_ERROR(resize_image(pixels, {1, 3, 3}, ResizeFilter::area, pixels, {1, 3, 3}), code, "10 values");
}

TEST(EncodedImage, ReadsWhatIsWritten) {
  const Tensor source = golden().read("source");
  const auto pixels = source.data<uint8_t>();
  const Rectangle all{.height = source.shape()[0], .width = source.shape()[1]};
  const std::vector<uint8_t> png = decoded(encode_png(pixels, source.shape()), all, all.height, all.width);
  EXPECT_EQ(largest_difference(png, pixels), 0);
  // Quality 100 rounds coefficients and color, and halves the color's resolution.
  const std::vector<uint8_t> jpeg =
      decoded(encode_jpeg(pixels, source.shape(), 100), all, all.height, all.width);
  EXPECT_LT(largest_difference(jpeg, pixels), 120);
  EXPECT_ERROR(encode_jpeg(pixels, {1, 2, 3}), ErrorCode::invalid_argument, "[1, 2, 3]");
  const std::vector<uint8_t> few(12);
  for (const Shape& shape :
       std::vector<Shape>{{1, 2, 2}, {2, 2, 5}, {0, 2, 3}, {2, 3, 3}, {2, 6}, {INT32_MAX, INT32_MAX, 3}})
    EXPECT_ERROR(encode_png(few, shape), ErrorCode::invalid_argument, to_string(shape));
  const std::vector<uint8_t> gray{0, 7, 128, 250, 255, 1};
  std::vector<uint8_t> read(gray.size());
  EncodedImage(encode_png(gray, {2, 3, 1}), "gray")
      .decode({.crop = Rectangle{.height = 2, .width = 3},
               .height = 2,
               .width = 3,
               .channels = 1,
               .filter = ResizeFilter::nearest},
              read);
  EXPECT_EQ(read, gray);
}

}  // namespace
}  // namespace tessera::data
