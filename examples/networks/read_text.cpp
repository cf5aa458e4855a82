// The lines of text in an image, by PaddleOCR's networks: ./read_text FOLDER IMAGE
//
// FOLDER holds ch_PP-OCRv4_det_infer.onnx, which says where text is, and ch_PP-OCRv4_rec_infer.onnx, which
// reads a line (https://github.com/PaddlePaddle/PaddleOCR; Chinese and Latin letters).
#include <algorithm>
#include <cmath>
#include <cstdio>
#include <sstream>

#include <tessera/onnx.h>
#include <tessera/tessera.h>
namespace ts = tessera;

namespace {

using ts::data::Rectangle;

constexpr int64_t kLongest = 960;  // pixels of the image where text is looked for
constexpr int64_t kMultiple = 32;  // of its sides
constexpr float kText = 0.3F;      // likelihood of a pixel of text
constexpr float kTextMean = 0.5F;  // of all pixels of a line
constexpr double kGrowth =
    1.6;  // what is marked is the middle of a line: so much area for its perimeter is added
constexpr int64_t kLineHeight = 48;

// Of a part of the image, [1, 3, height, width], -1 to 1, blue first. What the part does not fill is 0.
ts::Tensor pixels_of(const std::vector<std::byte>& file, const std::string& name,
                     std::optional<Rectangle> part, int64_t height, int64_t width, int64_t filled) {
  std::vector<uint8_t> pixels(static_cast<size_t>(height * filled * 3));
  ts::data::EncodedImage image(file, name);
  image.decode({.crop = part, .height = height, .width = filled}, pixels);
  ts::Tensor result(ts::DataType::fp32, {1, 3, height, width});
  for (int64_t c = 0; c < 3; ++c) {
    for (int64_t y = 0; y < height; ++y) {
      for (int64_t x = 0; x < filled; ++x) {
        const uint8_t value = pixels[static_cast<size_t>((y * filled + x) * 3 + 2 - c)];
        result.data<float>()[static_cast<size_t>((c * height + y) * width + x)] =
            static_cast<float>(value) / 127.5F - 1;
      }
    }
  }
  return result;
}

// Around the pixels of text that touch `start`, which are taken out of the map; nothing where it is too
// unlikely or small.
std::optional<Rectangle> line_around(std::span<float> map, int64_t height, int64_t width, int64_t start) {
  int64_t top = height, bottom = 0, left = width, right = 0;
  double sum = 0;
  int64_t count = 0;
  std::vector<int64_t> open{start};
  while (!open.empty()) {
    const int64_t at = open.back(), y = at / width, x = at % width;
    open.pop_back();
    float& likelihood = map[static_cast<size_t>(at)];
    if (likelihood < kText) continue;
    sum += likelihood;
    ++count;
    likelihood = 0;
    top = std::min(top, y), bottom = std::max(bottom, y + 1), left = std::min(left, x),
    right = std::max(right, x + 1);
    if (y > 0) open.push_back(at - width);
    if (y + 1 < height) open.push_back(at + width);
    if (x > 0) open.push_back(at - 1);
    if (x + 1 < width) open.push_back(at + 1);
  }
  if (bottom - top < 3 || right - left < 3 || sum < kTextMean * static_cast<double>(count)) return {};
  const double tall = static_cast<double>(bottom - top), wide = static_cast<double>(right - left);
  const auto more = static_cast<int64_t>(tall * wide * kGrowth / (2 * (tall + wide)));
  top = std::max<int64_t>(top - more, 0), left = std::max<int64_t>(left - more, 0);
  return Rectangle{top, left, std::min(bottom + more, height) - top, std::min(right + more, width) - left};
}

// The likeliest character of each column; one that stays is one character, and the first of all is none.
std::string read_columns(const ts::Tensor& likelihoods, const std::vector<std::string>& characters) {
  const auto classes = static_cast<size_t>(likelihoods.shape()[2]);
  std::string text;
  size_t before = 0;
  for (auto columns = likelihoods.data<float>(); !columns.empty(); columns = columns.subspan(classes)) {
    const auto best = static_cast<size_t>(std::ranges::max_element(columns.first(classes)) - columns.begin());
    if (best != 0 && best != before) text += best <= characters.size() ? characters[best - 1] : " ";
    before = best;
  }
  return text;
}

}  // namespace

int main(int argc, char** argv) try {
  if (argc != 3) return std::fprintf(stderr, "usage: %s FOLDER IMAGE\n", argv[0]), 2;
  const std::string folder = argv[1], name = argv[2];
  const std::vector<std::byte> file = ts::read_file(name);
  const ts::data::ImageInfo info = ts::data::EncodedImage(file, name).info();
  const double scale =
      std::min(1.0, static_cast<double>(kLongest) / static_cast<double>(std::max(info.height, info.width)));
  const auto side = [&](int64_t pixels) {
    const auto multiples = std::lround(static_cast<double>(pixels) * scale / kMultiple);
    return std::max<int64_t>(multiples, 1) * kMultiple;
  };
  const int64_t height = side(info.height), width = side(info.width);

  ts::program::Runner detector(ts::onnx::load(folder + "/ch_PP-OCRv4_det_infer.onnx"));
  const auto found = detector.run({{"x", pixels_of(file, name, {}, height, width, width)}});
  ts::Tensor map = found.at("sigmoid_0.tmp_0").tensor()->clone();
  ts::program::Runner reader(ts::onnx::load(folder + "/ch_PP-OCRv4_rec_infer.onnx"));
  std::istringstream listed(reader.module().metadata.at("character"));
  std::vector<std::string> characters;
  for (std::string character; std::getline(listed, character);) characters.push_back(character);

  for (int64_t start = 0; start < map.size(); ++start) {
    if (map.data<float>()[static_cast<size_t>(start)] < kText) continue;
    const std::optional<Rectangle> line = line_around(map.data<float>(), height, width, start);
    if (!line.has_value()) continue;
    const Rectangle part{line->top * info.height / height, line->left * info.width / width,
                         line->height * info.height / height, line->width * info.width / width};
    const int64_t filled = std::max<int64_t>(kLineHeight * part.width / std::max<int64_t>(part.height, 1), 1);
    const int64_t padded = (filled + kMultiple - 1) / kMultiple * kMultiple;
    const auto read = reader.run({{"x", pixels_of(file, name, part, kLineHeight, padded, filled)}});
    const std::string text = read_columns(*read.at("softmax_11.tmp_0").tensor(), characters);
    if (!text.empty()) std::printf("%s\n", text.c_str());
  }
} catch (const std::exception& error) {
  return std::fprintf(stderr, "%s\n", error.what()), 1;
}
