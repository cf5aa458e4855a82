#include "cli/data_drawing.h"

#include <algorithm>
#include <array>
#include <cmath>

#include <fmt/format.h>

namespace tessera::cli {
namespace {

using Color = std::array<uint8_t, 3>;

// Colors that are told apart side by side, of classes in turn.
constexpr std::array<Color, 8> kColors{{{230, 60, 60},
                                        {60, 140, 255},
                                        {70, 200, 80},
                                        {255, 180, 30},
                                        {200, 80, 220},
                                        {40, 210, 210},
                                        {255, 120, 170},
                                        {170, 220, 40}}};

// Digits of three by five pixels, a row after the other.
constexpr int64_t kDigitHeight = 5;
constexpr int64_t kDigitWidth = 3;
constexpr std::array<const char*, 10> kDigits{
    "###"
    "# #"
    "# #"
    "# #"
    "###",
    " # "
    "## "
    " # "
    " # "
    "###",
    "###"
    "  #"
    "###"
    "#  "
    "###",
    "###"
    "  #"
    "###"
    "  #"
    "###",
    "# #"
    "# #"
    "###"
    "  #"
    "  #",
    "###"
    "#  "
    "###"
    "  #"
    "###",
    "###"
    "#  "
    "###"
    "# #"
    "###",
    "###"
    "  #"
    "  #"
    "  #"
    "  #",
    "###"
    "# #"
    "###"
    "# #"
    "###",
    "###"
    "# #"
    "###"
    "  #"
    "###"};

class Canvas {
 public:
  explicit Canvas(report::Picture& picture) : picture_(picture) {}

  // Outside of the picture nothing is drawn.
  void set(int64_t y, int64_t x, const Color& color) {
    if (y < 0 || x < 0 || y >= picture_.height || x >= picture_.width) return;
    std::ranges::copy(color, pixel(y * picture_.width + x));
  }
  void tint(std::span<const uint8_t> mask, const Color& color) {
    for (size_t i = 0; i < mask.size(); ++i) {
      if (mask[i] == 0) continue;
      auto own = pixel(static_cast<int64_t>(i));
      for (size_t c = 0; c < color.size(); ++c, ++own) *own = static_cast<uint8_t>((*own + color[c]) / 2);
    }
  }
  void fill(int64_t top, int64_t left, int64_t bottom, int64_t right, const Color& color) {
    for (int64_t y = top; y < bottom; ++y)
      for (int64_t x = left; x < right; ++x) set(y, x, color);
  }
  void outline(int64_t top, int64_t left, int64_t bottom, int64_t right, const Color& color) {
    fill(top, left, top + 1, right, color);
    fill(bottom - 1, left, bottom, right, color);
    fill(top, left, bottom, left + 1, color);
    fill(top, right - 1, bottom, right, color);
  }
  // On a field of the color, its upper left corner there.
  void number(int64_t top, int64_t left, const std::string& digits, const Color& color) {
    const auto length = static_cast<int64_t>(digits.size());
    fill(top, left, top + kDigitHeight + 2, left + length * (kDigitWidth + 1) + 1, color);
    for (int64_t i = 0; i < length; ++i) {
      const char* const shape = kDigits[static_cast<size_t>(digits[static_cast<size_t>(i)] - '0')];
      for (int64_t k = 0; k < kDigitHeight * kDigitWidth; ++k) {
        if (shape[k] == '#')
          set(top + 1 + k / kDigitWidth, left + 1 + i * (kDigitWidth + 1) + k % kDigitWidth, {0, 0, 0});
      }
    }
  }

 private:
  std::vector<uint8_t>::iterator pixel(int64_t place) { return picture_.pixels.begin() + 3 * place; }

  report::Picture& picture_;
};

}  // namespace

void draw_objects(report::Picture& picture, const data::AnnotatedImage& image, const data::View& view,
                  const std::vector<std::string>& class_names) {
  Canvas canvas(picture);
  std::vector<uint8_t> mask(static_cast<size_t>(view.height * view.width));
  int64_t count = 0;
  for (const data::AnnotatedObject& object : image.objects) {
    const auto box = data::seen(object.box, view, {});
    if (!box.has_value()) continue;
    const Color& color = kColors[static_cast<size_t>(object.label) % kColors.size()];
    if (object.has_mask()) {
      data::draw_mask(data::mask_of(image, object), view, mask);
      canvas.tint(mask, color);
    }
    const int64_t top = std::llround(std::floor(box->top));
    const int64_t left = std::llround(std::floor(box->left));
    canvas.outline(top, left, std::llround(std::ceil(box->bottom)), std::llround(std::ceil(box->right)),
                   color);
    canvas.number(top, left, std::to_string(++count), color);
    picture.caption +=
        fmt::format("{}{} {}{}", count == 1 ? "" : ", ", count,
                    class_names[static_cast<size_t>(object.label)], object.ignored ? " (ignored)" : "");
  }
}

}  // namespace tessera::cli
