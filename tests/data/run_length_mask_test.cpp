#include "tessera/data/run_length_mask.h"

#include <algorithm>
#include <filesystem>
#include <limits>
#include <set>

#include <gtest/gtest.h>

#include "tessera/data/image.h"
#include "tessera/data/safetensors.h"

#include "support/expect_error.h"
#include "test_folder.h"

namespace tessera::data {
namespace {

// Calls visit(mask, file, "KIND/CASE") for each case of the golden file.
template <typename Visit>
void visit_golden(const std::string& kind, const Visit& visit) {
  const auto file =
      SafetensorsFile::open(std::filesystem::path(TESSERA_TEST_FOLDER) / "golden" / "masks.safetensors");
  std::set<std::string> cases;
  for (const auto& [name, entry] : file.entries())
    if (name.starts_with(kind + "/")) cases.insert(name.substr(0, name.rfind('/')));
  ASSERT_FALSE(cases.empty());
  for (const std::string& name : cases) visit(file, name);
}

void expect_golden(const RunLengthMask& mask, const SafetensorsFile& file, const std::string& name) {
  const Tensor expected = file.read(name + "/pixels");
  const std::vector<uint8_t> found = pixels(mask);
  const auto golden = expected.data<uint8_t>();
  EXPECT_TRUE(std::ranges::equal(found, golden)) << name;
  EXPECT_EQ(area(mask), file.read(name + "/area").at(0)) << name;
  const BoundingBox box = bounds(mask);
  const Tensor bounds = file.read(name + "/bounds");
  EXPECT_EQ(box.left, bounds.at(0)) << name;
  EXPECT_EQ(box.top, bounds.at(1)) << name;
  EXPECT_EQ(box.right - box.left, bounds.at(2)) << name;
  EXPECT_EQ(box.bottom - box.top, bounds.at(3)) << name;
}

TEST(RunLengthMask, FillsOutlinesAsPycocotools) {
  visit_golden("outline", [](const SafetensorsFile& file, const std::string& name) {
    const Tensor expected = file.read(name + "/pixels");
    std::vector<std::vector<float>> outlines;
    for (int i = 0; file.entries().contains(name + "/" + std::to_string(i)); ++i) {
      const Tensor outline = file.read(name + "/" + std::to_string(i));
      const auto corners = outline.data<float>();
      outlines.emplace_back(corners.begin(), corners.end());
    }
    ASSERT_FALSE(outlines.empty());
    expect_golden(fill_outlines(outlines, expected.shape()[0], expected.shape()[1], name), file, name);
  });
}

TEST(RunLengthMask, ReadsTextAsPycocotools) {
  visit_golden("runs", [](const SafetensorsFile& file, const std::string& name) {
    const Tensor expected = file.read(name + "/pixels");
    const Tensor text = file.read(name + "/text");
    const auto characters = text.data<uint8_t>();
    const std::string runs(characters.begin(), characters.end());
    expect_golden(parse_run_lengths(runs, expected.shape()[0], expected.shape()[1], name), file, name);
  });
}

TEST(RunLengthMask, RefusesWhatIsNoMask) {
  const auto code = ErrorCode::invalid_file;
  EXPECT_EQ(parse_run_lengths("123", 2, 3, "x").runs, (std::vector<uint32_t>{1, 2, 3}));
  EXPECT_ERROR(parse_run_lengths("124", 2, 3, "x"), code, "x", "add up to 7", "3x2");
  EXPECT_ERROR(parse_run_lengths("", 2, 3, "x"), code, "add up to 0");
  EXPECT_ERROR(parse_run_lengths("12P", 2, 3, "x"), code, "cut off");
  EXPECT_ERROR(parse_run_lengths("1 3", 2, 3, "x"), code, "character 32");
  EXPECT_ERROR(parse_run_lengths("1O3", 2, 3, "x"), code, "a run of -1");
  EXPECT_ERROR(parse_run_lengths("PPPPPPPPPP1", 2, 3, "x"), code, "too long");
  EXPECT_ERROR(parse_run_lengths("7", 2, 3, "x"), code, "a run of 7");
  EXPECT_ERROR(check_runs({2, 3, {UINT32_MAX, UINT32_MAX}}, "x"), code, "add up to 8589934590");
}

TEST(RunLengthMask, RefusesWhatIsNoOutline) {
  const auto code = ErrorCode::invalid_file;
  const auto check = [](const std::vector<float>& outline) { check_outline(outline, 10, 20, "x"); };
  check({-20, -10, 40, 0, 0, 20});
  EXPECT_ERROR(check({1, 2, 3, 4}), code, "outline of 4 numbers");
  EXPECT_ERROR(check({1, 2, 3, 4, 5, 6, 7}), code, "outline of 7 numbers");
  EXPECT_ERROR(check({1, 2, 3, 4, 41, 6}), code, "reaches to 41", "20x10");
  EXPECT_ERROR(check({1, 2, 3, 4, std::numeric_limits<float>::quiet_NaN(), 6}), code, "reaches to nan");
  std::vector<float> zigzag;
  for (int i = 0; i < 200'000; ++i) zigzag.insert(zigzag.end(), {i % 2 == 0 ? -20.0F : 40.0F, 3});
  EXPECT_ERROR(check(zigzag), code, "11960000 pixels long");
}

// A mask is drawn as an image is that is resized by the pixel nearest to each middle.
TEST(RunLengthMask, IsDrawnAsTheImageIsSeen) {
  const std::vector<std::vector<float>> outlines{{3, 4, 30, 8, 11, 29}, {15, 10, 45, 12, 30, 33}};
  const RunLengthMask mask = fill_outlines(outlines, 37, 53, "x");
  const std::vector<uint8_t> whole = pixels(mask);
  const std::vector<View> views{
      whole_view(37, 53, 37, 53),
      whole_view(37, 53, 20, 91),
      {.part = {5, 7, 21, 30}, .height = 21, .width = 30},
      {.part = {5, 7, 21, 30}, .height = 40, .width = 17, .mirrored = true},
      {.part = {0, 20, 37, 5}, .height = 3, .width = 60, .mirrored = true},
  };
  for (const View& view : views) {
    std::vector<uint8_t> part;
    for (int64_t y = 0; y < view.part.height; ++y)
      for (int64_t x = 0; x < view.part.width; ++x)
        part.push_back(whole[static_cast<size_t>((view.part.top + y) * 53 + view.part.left + x)]);
    std::vector<uint8_t> expected(static_cast<size_t>(view.height * view.width));
    resize_image(part, {view.part.height, view.part.width, 1}, ResizeFilter::nearest, expected,
                 {view.height, view.width, 1});
    if (view.mirrored) {
      for (int64_t y = 0; y < view.height; ++y)
        std::reverse(expected.begin() + y * view.width, expected.begin() + (y + 1) * view.width);
    }
    std::vector<uint8_t> drawn(expected.size(), 7);
    draw_mask(mask, view, drawn);
    EXPECT_EQ(drawn, expected) << view.part.top << " " << view.height << "x" << view.width;
  }
}

}  // namespace
}  // namespace tessera::data
