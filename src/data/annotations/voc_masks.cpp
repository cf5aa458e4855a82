// Pascal VOC's masks: one PNG for an image, whose pixels are the numbers of objects, seen as colors.
#include "data/annotations/voc_masks.h"

#include "tessera/base/error.h"
#include "tessera/base/file.h"

#include "data/sample_files.h"

namespace tessera::data {
namespace {

constexpr int64_t kVoid = 255;  // borders between objects, and what nobody has marked

// The number whose color it is: bit k of each color holds bits 3(7-k), 3(7-k)+1 and 3(7-k)+2 of the number
// (VOC's development kit, VOClabelcolormap). -1 for colors of no number.
int64_t number_of(const uint8_t* color) {
  unsigned number = 0;
  for (unsigned channel = 0; channel < 3; ++channel)
    for (unsigned bit = 0; bit < 8; ++bit)
      number |= (color[channel] >> (7 - bit) & 1U) << (3 * bit + channel);
  return number <= kVoid ? static_cast<int64_t>(number) : -1;
}

}  // namespace

void read_voc_masks(const std::filesystem::path& file, AnnotatedImage& image) {
  const std::string name = file.string();
  const std::vector<std::byte> bytes = read_file(file, kLargestSample);
  EncodedImage encoded(bytes, name, {.pixels = image.height * image.width});
  require(encoded.info().height == image.height && encoded.info().width == image.width,
          ErrorCode::invalid_file, "{}: a mask of {}x{} pixels for an image of {}x{}", name,
          encoded.info().width, encoded.info().height, image.width, image.height);
  std::vector<uint8_t> pixels(static_cast<size_t>(3 * image.height * image.width));
  encoded.decode({.height = image.height, .width = image.width, .filter = ResizeFilter::nearest}, pixels);
  std::vector<std::vector<uint32_t>> runs(kVoid);  // of each number
  std::vector<int64_t> ends(kVoid, 0);
  for (int64_t place = 0; place < image.height * image.width; ++place) {
    const int64_t row = place % image.height;
    const int64_t column = place / image.height;
    const int64_t number = number_of(pixels.data() + 3 * (row * image.width + column));
    require(number >= 0, ErrorCode::invalid_file, "{}: pixel {}, {} has a color of no object", name, column,
            row);
    if (number == 0 || number == kVoid) continue;
    const auto own = static_cast<size_t>(number);
    if (runs[own].empty() || ends[own] != place) {
      runs[own].push_back(static_cast<uint32_t>(place - ends[own]));
      runs[own].push_back(0);
    }
    ++runs[own].back();
    ends[own] = place + 1;
  }
  for (AnnotatedObject& object : image.objects) {
    if (object.number >= kVoid) continue;
    const auto own = static_cast<size_t>(object.number);
    runs[own].push_back(static_cast<uint32_t>(image.height * image.width - ends[own]));
    object.runs = std::move(runs[own]);
  }
}

}  // namespace tessera::data
