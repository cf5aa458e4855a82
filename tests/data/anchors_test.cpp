#include "tessera/data/anchors.h"

#include <algorithm>

#include <gtest/gtest.h>

#include "tessera/data/safetensors.h"

#include "support/expect_error.h"
#include "test_folder.h"

namespace tessera::data {
namespace {

const SafetensorsFile& golden() {
  static const SafetensorsFile file =
      SafetensorsFile::open(std::filesystem::path(TESSERA_TEST_FOLDER) / "golden" / "anchors.safetensors");
  return file;
}

std::vector<BoundingBox> boxes_of(const std::string& name) {
  const Tensor tensor = golden().read(name);
  const auto corners = tensor.data<float>();
  std::vector<BoundingBox> boxes;
  for (size_t i = 0; i < corners.size(); i += 4)
    boxes.push_back({corners[i], corners[i + 1], corners[i + 2], corners[i + 3]});
  return boxes;
}

// Of fp32 numbers up to 130, which torchvision sums in another order.
constexpr double kRounding = 1e-4;

void expect_near(const BoundingBox& a, const BoundingBox& b) {
  EXPECT_NEAR(a.left, b.left, kRounding);
  EXPECT_NEAR(a.top, b.top, kRounding);
  EXPECT_NEAR(a.right, b.right, kRounding);
  EXPECT_NEAR(a.bottom, b.bottom, kRounding);
}

TEST(Anchors, OfAGridAreTorchvisions) {
  const std::vector<BoundingBox> expected = boxes_of("retinanet/anchors");
  // Torchvision's are rounded, and lie around the first pixel's corner.
  std::vector<AnchorGrid> grids;
  size_t first = 0;
  for (const int64_t rows : {12, 6, 3}) {
    const double step = 96.0 / static_cast<double>(rows);
    AnchorGrid grid{
        .rows = rows, .columns = rows * 4 / 3, .row_step = step, .column_step = step, .offset = 0};
    for (size_t i = first; i < first + 9; ++i)
      grid.sizes.push_back({expected[i].bottom - expected[i].top, expected[i].right - expected[i].left});
    first += static_cast<size_t>(9 * grid.rows * grid.columns);
    grids.push_back(grid);
  }
  const std::vector<BoundingBox> anchors = grid_anchors(grids);
  ASSERT_EQ(anchors.size(), expected.size());
  for (size_t i = 0; i < anchors.size(); ++i) expect_near(anchors[i], expected[i]);
}

TEST(Anchors, FindTheObjectsThatTorchvisionSays) {
  struct Case {
    std::string name;
    std::string boxes;
    AnchorMatching matching;
  };
  for (const Case& test : {Case{"retinanet", "retinanet", {}},
                           {"rpn", "retinanet", {.foreground = 0.7, .background = 0.3}},
                           {"strict", "retinanet", {.best = BestAnchors::none}},
                           {"ssd", "ssd", {.background = 0.5, .best = BestAnchors::claimed}}}) {
    const std::vector<BoundingBox> objects = boxes_of(test.boxes + "/objects");
    const std::vector<int32_t> found =
        match_anchors(boxes_of(test.boxes + "/anchors"), objects, {}, test.matching);
    const Tensor expected = golden().read(test.name + "/matches");
    ASSERT_EQ(std::ssize(found), expected.size());
    for (size_t i = 0; i < found.size(); ++i)
      EXPECT_EQ(found[i], expected.data<int64_t>()[i]) << test.name << " " << i;
  }
}

TEST(Anchors, OffsetsAreTorchvisionsAndLeadBack) {
  for (const auto& [name, weights] :
       {std::pair{std::string("retinanet"), BoxOffsets{1, 1, 1, 1}}, {"ssd", BoxOffsets{10, 10, 5, 5}}}) {
    const std::vector<BoundingBox> anchors = boxes_of(name + "/anchors");
    const std::vector<BoundingBox> objects = boxes_of(name + "/objects");
    const Tensor matches = golden().read(name + "/matches");
    const Tensor expected = golden().read(name + "/offsets");
    int found = 0;
    for (size_t i = 0; i < anchors.size(); ++i) {
      if (matches.data<int64_t>()[i] < 0) continue;
      ++found;
      const BoundingBox& object = objects[static_cast<size_t>(matches.data<int64_t>()[i])];
      const BoxOffsets offsets = box_offsets(anchors[i], object, weights);
      for (size_t k = 0; k < 4; ++k)
        EXPECT_NEAR(offsets[k], expected.data<float>()[4 * i + k], kRounding) << name << " " << i;
      expect_near(box_at(anchors[i], offsets, weights), object);
    }
    EXPECT_GE(found, std::ssize(objects) - 2) << name;
  }
}

// What an ignored object overlaps is neither it nor background.
TEST(Anchors, DoNotCountWhereObjectsAreIgnored) {
  const std::vector<BoundingBox> anchors{{0, 0, 10, 10}, {20, 0, 30, 10}, {24, 0, 34, 10}, {60, 0, 70, 10}};
  const std::vector<BoundingBox> objects{{0, 0, 10, 9}, {20, 0, 30, 10}};
  const bool ignored[] = {false, true};
  EXPECT_EQ(match_anchors(anchors, objects, ignored, {}), (std::vector<int32_t>{0, -2, -2, -1}));
  EXPECT_EQ(match_anchors(anchors, objects, {}, {}), (std::vector<int32_t>{0, 1, -2, -1}));
  EXPECT_EQ(match_anchors(anchors, {}, {}, {.background = 0}), (std::vector<int32_t>{-1, -1, -1, -1}));
  EXPECT_TRUE(match_anchors({}, objects, {}, {}).empty());
}

TEST(Anchors, RefuseWhatIsNone) {
  const auto code = ErrorCode::invalid_argument;
  const auto grid = [](const AnchorGrid& one) { grid_anchors(std::span(&one, 1)); };
  EXPECT_ERROR(grid({.rows = 0, .columns = 2, .row_step = 1, .column_step = 1, .sizes = {{1, 1}}}), code,
               "at 0x2 places");
  EXPECT_ERROR(grid({.rows = 1, .columns = 2, .row_step = 1, .column_step = 0, .sizes = {{1, 1}}}), code,
               "0 columns apart");
  EXPECT_ERROR(grid({.rows = 1, .columns = 2, .row_step = 1, .column_step = 1, .sizes = {{1, 0}}}), code,
               "an anchor of 1x0");
  EXPECT_ERROR(match_anchors({}, {}, {}, {.foreground = 0.3}), code, "below an overlap of 0.4");
  const BoundingBox object{0, 0, 1, 1};
  const bool marks[] = {true, false};
  EXPECT_ERROR(match_anchors({}, std::span(&object, 1), marks, {}), code, "2 marks of 1");
}

}  // namespace
}  // namespace tessera::data
