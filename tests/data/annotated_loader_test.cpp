#include "tessera/data/annotated_loader.h"

#include <gtest/gtest.h>

#include "tessera/base/file.h"

#include "support/expect_error.h"
#include "support/temporary_folder.h"

namespace tessera::data {
namespace {

namespace fs = std::filesystem;
using testing::TemporaryFolder;

// Black, but for the white boxes of its objects, of which image k has k; the last is a crowd.
class Pictures {
 public:
  explicit Pictures(int64_t count) {
    Annotations annotations{.class_names = {"a", "b"}};
    for (int64_t k = 0; k < count; ++k) {
      const int64_t height = 40 + 2 * k;
      const int64_t width = 60 - k;
      AnnotatedImage image{
          .id = 100 + k, .file = std::to_string(k) + ".png", .height = height, .width = width};
      std::vector<uint8_t> pixels(static_cast<size_t>(height * width * 3), 0);
      for (int64_t i = 0; i < k; ++i) {
        const int64_t left = 4 + 9 * i;
        const auto x = static_cast<float>(left);
        image.objects.push_back({.label = static_cast<int32_t>(i % 2),
                                 .box = {x, 8, x + 6, 20},
                                 .ignored = i + 1 == k,
                                 .outlines = {{x, 8, x + 6, 8, x + 6, 20, x, 20}}});
        for (int64_t y = 8; y < 20; ++y)
          std::fill_n(pixels.begin() + (y * width + left) * 3, 6 * 3, uint8_t{255});
      }
      write_file(folder_ / image.file, encode_png(pixels, {height, width, 3}));
      annotations.images.push_back(std::move(image));
    }
    samples_ = std::make_shared<AnnotatedSamples>(folder_.path(), std::move(annotations));
  }

  const std::shared_ptr<const AnnotatedSamples>& samples() const { return samples_; }
  fs::path file(int64_t k) const { return folder_ / (std::to_string(k) + ".png"); }

 private:
  TemporaryFolder folder_;
  std::shared_ptr<const AnnotatedSamples> samples_;
};

constexpr BatchOptions kInOrder{.batch_size = 2, .shuffle = false, .drop_last = false, .workers = 0};

AnnotatedExampleOptions small_images() {
  return {.image_shape = {48, 64, 3}, .objects = 4, .masks = true};
}

std::vector<Batch> batches_of(const AnnotatedLoader& loader, const Cursor& from = {},
                              const Partition& part = {}) {
  std::vector<Batch> batches;
  const auto stream = loader.open(from, part);
  while (std::optional<Batch> batch = stream->next()) batches.push_back(*std::move(batch));
  return batches;
}

double at(const Batch& batch, const std::string& field, int64_t place) {
  return batch.fields.at(field).at(place);
}

TEST(AnnotatedLoader, GivesABoundedNumberOfObjectsAndTheirCount) {
  const Pictures pictures(3);
  const AnnotatedLoader loader(pictures.samples(), kInOrder, small_images());
  const std::vector<Field> fields = loader.fields();
  ASSERT_EQ(fields.size(), 8U);
  EXPECT_EQ(fields[1].name, "boxes");
  EXPECT_EQ(to_string(fields[1].type), "fp32[batch, 4, 4]");
  EXPECT_EQ(to_string(fields[7].type), "uint8[batch, 4, 48, 64]");
  const std::vector<Batch> batches = batches_of(loader);
  ASSERT_EQ(batches.size(), 2U);
  for (const Field& field : fields) {
    const Tensor& tensor = batches[0].fields.at(field.name);
    EXPECT_EQ(tensor.data_type(), field.type.data_type);
    EXPECT_EQ(tensor.shape(), to_static(substitute(field.type.shape, loader.sizes()[0])));
  }
  // Image 2, whose 44 x 58 pixels are resized to 48 x 64, in the first row of the second batch.
  EXPECT_EQ(at(batches[1], "image_ids", 0), 102);
  EXPECT_EQ(at(batches[1], "object_count", 0), 2);
  EXPECT_EQ(at(batches[1], "image_sizes", 0), 44);
  EXPECT_EQ(at(batches[1], "image_sizes", 1), 58);
  for (const auto& [place, value] : {std::pair{0, 4 * 64.0 / 58},
                                     {1, 8 * 48.0 / 44},
                                     {2, 10 * 64.0 / 58},
                                     {3, 20 * 48.0 / 44},
                                     {4, 13 * 64.0 / 58},
                                     {8, 0.0},
                                     {15, 0.0}})
    EXPECT_NEAR(at(batches[1], "boxes", place), value, 1e-5) << place;
  for (const auto& [place, label] : {std::pair{0, 0}, {1, 1}, {2, -1}, {3, -1}})
    EXPECT_EQ(at(batches[1], "labels", place), label);
  for (const auto& [place, ignored] : {std::pair{0, 0}, {1, 1}, {2, 0}})
    EXPECT_EQ(at(batches[1], "ignored", place), ignored);
  // The row after the last image only fills.
  EXPECT_EQ(batches[1].samples, 1);
  EXPECT_EQ(at(batches[1], "image_ids", 1), -1);
  EXPECT_EQ(at(batches[1], "object_count", 1), 0);
  EXPECT_EQ(at(batches[1], "labels", 4), -1);
  EXPECT_EQ(at(batches[1], "boxes", 16), 0);
}

// One anchor on each object's place, others on none.
TEST(AnnotatedLoader, TellsWhatEachAnchorIsToFind) {
  const Pictures pictures(3);
  AnnotatedExampleOptions options = small_images();
  const float across = 64.0F / 58;  // of image 2
  const float down = 48.0F / 44;
  options.targets = {.anchors = {{4 * across, 8 * down, 10 * across, 20 * down},
                                 {13 * across, 8 * down, 19 * across, 20 * down},
                                 {40, 30, 50, 40},
                                 {4 * across, 8 * down, 16 * across, 20 * down}},
                     .weights = {10, 10, 5, 5}};
  for (const bool masks : {true, false}) {
    options.masks = masks;
    const AnnotatedLoader loader(pictures.samples(), kInOrder, options);
    const std::vector<Field> fields = loader.fields();
    ASSERT_EQ(fields.size(), masks ? 10U : 9U);
    EXPECT_EQ(fields[fields.size() - 2].name, "anchor_labels");
    EXPECT_EQ(to_string(fields.back().type), "fp32[batch, 4, 4]");
    const Batch batch = batches_of(loader)[1];
    // Object 1 is a crowd; the last anchor covers half as much again as object 0, an overlap of a half.
    for (const auto& [place, label] : {std::pair{0, 0}, {1, -2}, {2, -1}, {3, 0}, {4, -2}, {7, -2}})
      EXPECT_EQ(at(batch, "anchor_labels", place), label) << place;
    // Its middle lies a quarter of its width to the right of the object's, of half its width.
    for (const auto& [place, value] :
         {std::pair{0, 0.0}, {3, 0.0}, {4, 0.0}, {12, -2.5}, {13, 0.0}, {14, 5 * -0.693147}, {16, 0.0}})
      EXPECT_NEAR(at(batch, "anchor_boxes", place), value, 1e-5) << place;
  }
}

// Pixels and masks show the same, however the image is cut and mirrored.
TEST(AnnotatedLoader, BoxesAndMasksFollowTheImage) {
  const Pictures pictures(5);
  for (const AnnotatedCrop crop : {AnnotatedCrop::none, AnnotatedCrop::resized, AnnotatedCrop::overlap}) {
    AnnotatedExampleOptions options = small_images();
    options.crop = crop;
    options.mirror = true;
    options.filter = ResizeFilter::nearest;
    options.visibility = {.by_center = false};
    const AnnotatedLoader loader(pictures.samples(), kInOrder, options);
    int64_t seen_objects = 0;
    for (int64_t epoch = 0; epoch < 4; ++epoch) {
      for (const Batch& batch : batches_of(loader, {.epoch = epoch})) {
        constexpr int64_t kPixels = 48 * 64;
        for (int64_t row = 0; row < batch.samples; ++row) {
          const auto count = static_cast<int64_t>(at(batch, "object_count", row));
          seen_objects += count;
          int64_t different = 0;
          for (int64_t pixel = 0; pixel < kPixels; ++pixel) {
            double covered = 0;
            for (int64_t k = 0; k < 4; ++k) covered += at(batch, "masks", (row * 4 + k) * kPixels + pixel);
            different += (at(batch, "images", (row * kPixels + pixel) * 3) > 127) != (covered > 0) ? 1 : 0;
          }
          // PNG keeps every pixel, and both are drawn by the nearest one.
          EXPECT_EQ(different, 0) << "crop " << static_cast<int>(crop) << " epoch " << epoch << " row "
                                  << row;
        }
      }
    }
    EXPECT_GT(seen_objects, 10);
  }
}

TEST(AnnotatedLoader, GoesOnWhereItStoppedWhateverTheWorkers) {
  const Pictures pictures(7);
  BatchOptions batching = kInOrder;
  batching.shuffle = batching.drop_last = true;
  batching.seed = 3;
  AnnotatedExampleOptions options = small_images();
  options.mirror = true;
  options.crop = AnnotatedCrop::overlap;
  const std::vector<Batch> straight =
      batches_of(AnnotatedLoader(pictures.samples(), batching, options), {.epoch = 1});
  ASSERT_EQ(straight.size(), 3U);
  batching.workers = 3;
  const AnnotatedLoader loader(pictures.samples(), batching, options);
  const std::vector<Batch> rest = batches_of(loader, straight[0].after);
  ASSERT_EQ(rest.size(), 2U);
  for (size_t i = 0; i < rest.size(); ++i)
    for (const auto& [name, tensor] : rest[i].fields)
      EXPECT_TRUE(tensor.identical(straight[i + 1].fields.at(name))) << name;
  // Two ranks see the rows of a batch that is twice as large.
  batching.batch_size = 1;
  const AnnotatedLoader parts(pictures.samples(), batching, options);
  for (int64_t rank = 0; rank < 2; ++rank) {
    const std::vector<Batch> part = batches_of(parts, {.epoch = 1}, {.rank = rank, .ranks = 2});
    ASSERT_EQ(part.size(), 3U);
    for (size_t i = 0; i < part.size(); ++i)
      EXPECT_EQ(at(part[i], "image_ids", 0), at(straight[i], "image_ids", rank));
  }
}

TEST(AnnotatedLoader, DealsWithBrokenImagesAndCrowdedOnes) {
  const Pictures pictures(4);
  write_file(pictures.file(1), "no image");
  AnnotatedExampleOptions options = small_images();
  options.objects = 2;
  EXPECT_ERROR(batches_of(AnnotatedLoader(pictures.samples(), kInOrder, options)), ErrorCode::invalid_file,
               "1.png");
  options.broken = BrokenSamples::skip;
  const AnnotatedLoader skipping(pictures.samples(), kInOrder, options);
  const std::vector<Batch> skipped = batches_of(skipping);
  EXPECT_EQ(at(skipped[0], "image_ids", 1), -1);
  EXPECT_EQ(at(skipped[0], "labels", 2), -1);
  EXPECT_EQ(at(skipped[1], "object_count", 1), 2);
  const std::vector<std::string> remarks = skipping.remarks();
  ASSERT_EQ(remarks.size(), 2U);
  EXPECT_NE(remarks[0].find("1 of 4 samples"), std::string::npos) << remarks[0];
  EXPECT_NE(remarks[1].find("1 of 4 images had more than 2 objects"), std::string::npos) << remarks[1];
  options.broken = BrokenSamples::replace;
  EXPECT_EQ(at(batches_of(AnnotatedLoader(pictures.samples(), kInOrder, options))[0], "image_ids", 1), 102);
}

TEST(AnnotatedLoader, RefusesWhatIsOutOfRange) {
  const Pictures pictures(2);
  const auto code = ErrorCode::invalid_argument;
  const auto make = [&](const std::function<void(AnnotatedExampleOptions&)>& change) {
    AnnotatedExampleOptions options = small_images();
    change(options);
    return AnnotatedLoader(pictures.samples(), kInOrder, options);
  };
  EXPECT_ERROR(AnnotatedLoader(pictures.samples(), {.batch_size = 0}), code, "batch_size is 0");
  EXPECT_ERROR(make([](auto& options) { options.objects = 0; }), code, "objects is 0");
  EXPECT_ERROR(make([](auto& options) { options.image_shape = {4, 4}; }), code, "[4, 4]");
  EXPECT_ERROR(make([](auto& options) { options.visibility.minimum_visible = 2; }), code, "2 is visible");
  EXPECT_ERROR(AnnotatedLoader(pictures.samples(), {.batch_size = 3}), code,
               "2 examples do not fill one batch of 3");
}

}  // namespace
}  // namespace tessera::data
