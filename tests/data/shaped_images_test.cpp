#include "tessera/data/shaped_images.h"

#include <algorithm>
#include <set>

#include <gtest/gtest.h>

#include "tessera/data/loader.h"

#include "support/expect_error.h"

namespace tessera::data {
namespace {

constexpr int64_t kImages = 30;

// Every third image is twice as wide as high, the one after it is high, and one has a shape of its own.
class OddShapes : public SyntheticDataset {
 public:
  explicit OddShapes(const Shape& shape, int64_t size = kImages)
      : SyntheticDataset({.size = size, .image_shape = shape, .classes = 3, .seed = 4}) {}
  double ratio(int64_t index) const override {
    if (index == kImages - 1) return 9;
    return index % 3 == 0 ? 2 : index % 3 == 1 ? 0.49 : 1.05;
  }
};

std::vector<std::shared_ptr<const Dataset>> in_shapes() {
  std::vector<std::shared_ptr<const Dataset>> result;
  for (const Shape& shape : common_image_shapes(8, 1)) result.push_back(std::make_shared<OddShapes>(shape));
  return result;
}

TEST(CommonImageShapes, AreMultiplesOnTheirLongSide) {
  const std::vector<Shape> expected{{100, 100, 3}, {100, 136, 3}, {136, 100, 3}, {100, 152, 3},
                                    {152, 100, 3}, {100, 200, 3}, {200, 100, 3}};
  EXPECT_EQ(common_image_shapes(100, 3), expected);
}

TEST(ShapedImages, HaveTheNearestShapeAndNoOthersAreKept) {
  const ShapedImages shaped = shaped_images(in_shapes());
  ASSERT_EQ(shaped.shapes.size(), 3U);
  for (int64_t i = 0; i < kImages; ++i) {
    const Shape& shape =
        shaped.shapes[static_cast<size_t>(shaped.shape_of[static_cast<size_t>(i)])]->image_shape();
    const bool is_wide = i % 3 == 0 || i == kImages - 1;
    EXPECT_EQ(shape, is_wide ? (Shape{8, 16, 1}) : i % 3 == 1 ? (Shape{16, 8, 1}) : (Shape{8, 8, 1})) << i;
  }
}

TEST(ShapedImages, OfNoneOrOfDifferentNumbersAreRefused) {
  EXPECT_ERROR(shaped_images({}), ErrorCode::invalid_argument, "no shape");
  const OddShapes one_shape(Shape{8, 8, 1});
  EXPECT_ERROR(shaped_images({one_shape.reshaped({8, 16, 1})}), ErrorCode::invalid_argument, "of one shape");
  EXPECT_ERROR(shaped_images({std::make_shared<OddShapes>(Shape{8, 8, 1}),
                              std::make_shared<OddShapes>(Shape{8, 16, 1}, 7)}),
               ErrorCode::invalid_argument, "30 images in one shape, 7 in another");
}

// Each image once, in a batch of its shape, as the data set of that shape has it.
TEST(ShapedImages, ComeInBatchesOfOneShape) {
  const ShapedImages shaped = shaped_images(in_shapes());
  const Loader loader(shaped, {.batch_size = 4, .shuffle = false, .drop_last = false});
  EXPECT_EQ(loader.fields().front().type.shape,
            (SymbolicShape{Dimension::symbol("batch"), Dimension::symbol("height"),
                           Dimension::symbol("width"), 1}));
  EXPECT_EQ(loader.sizes().size(), 3U);
  std::multiset<int64_t> seen;
  const auto stream = loader.open({});
  while (const std::optional<Batch> batch = stream->next()) {
    const Tensor& images = batch->fields.at("images");
    EXPECT_EQ(images.shape(), (Shape{4, batch->sizes.at("height"), batch->sizes.at("width"), 1}));
    const size_t bytes = images.bytes() / 4;
    for (size_t row = 0; row < static_cast<size_t>(batch->samples); ++row) {
      const int64_t index = batch->indices[row];
      seen.insert(index);
      const Dataset& own = *shaped.shapes[static_cast<size_t>(shaped.shape_of[static_cast<size_t>(index)])];
      ASSERT_EQ(own.image_shape(), (Shape{images.shape()[1], images.shape()[2], 1}));
      std::vector<uint8_t> expected(bytes);
      int32_t label = 0;
      own.read(index, expected, label);
      EXPECT_TRUE(std::ranges::equal(images.data<uint8_t>().subspan(row * bytes, bytes), expected));
      EXPECT_EQ(batch->fields.at("labels").data<int32_t>()[row], label);
    }
  }
  EXPECT_EQ(seen.size(), static_cast<size_t>(kImages));
  EXPECT_EQ(std::set<int64_t>(seen.begin(), seen.end()).size(), seen.size());
}

}  // namespace
}  // namespace tessera::data
