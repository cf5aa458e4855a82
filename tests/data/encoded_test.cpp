#include "tessera/data/encoded.h"

#include <algorithm>
#include <fstream>
#include <set>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "tessera/base/file.h"
#include "tessera/data/loader.h"
#include "tessera/data/shards.h"
#include "tessera/data/tar.h"

#include "support/expect_error.h"
#include "support/temporary_folder.h"

namespace tessera::data {
namespace {

namespace fs = std::filesystem;
using testing::TemporaryFolder;

// Colors that tell the images apart, and edges that tell the parts of one.
std::vector<uint8_t> picture(int64_t number, int64_t height, int64_t width) {
  std::vector<uint8_t> pixels;
  for (int64_t y = 0; y < height; ++y) {
    for (int64_t x = 0; x < width; ++x) {
      pixels.push_back(static_cast<uint8_t>(40 * (number % 6)));
      pixels.push_back(static_cast<uint8_t>(255 * x / width));
      pixels.push_back(static_cast<uint8_t>(255 * y / height));
    }
  }
  return pixels;
}

std::vector<uint8_t> noise(int64_t height, int64_t width) {
  std::vector<uint8_t> pixels;
  for (int64_t i = 0; i < height * width * 3; ++i)
    pixels.push_back(static_cast<uint8_t>(static_cast<uint64_t>(i) * 2654435761U >> 13));
  return pixels;
}

void write_picture(const fs::path& path, int64_t number, int64_t height = 20, int64_t width = 24) {
  fs::create_directories(path.parent_path());
  const Shape shape{height, width, 3};
  const std::vector<uint8_t> pixels = picture(number, height, width);
  write_file(path, path.extension() == ".png" ? encode_png(pixels, shape) : encode_jpeg(pixels, shape));
}

// Three classes of 4, 5 and 6 images of different sizes.
void write_classes(const fs::path& folder) {
  int64_t number = 0;
  for (const auto& [name, count] : {std::pair{"cat", 4}, {"dog", 5}, {"owl", 6}}) {
    for (int i = 0; i < count; ++i, ++number)
      write_picture(folder / name / fmt::format("{}.{}", i, i % 2 == 0 ? "jpg" : "png"), number, 20 + number,
                    24 + 2 * number);
  }
}

std::shared_ptr<const EncodedDataset> dataset_of(std::shared_ptr<const EncodedSamples> samples,
                                                 BrokenSamples broken = BrokenSamples::fail) {
  return std::make_shared<EncodedDataset>(
      std::move(samples), EncodedDatasetOptions{.image_shape = {8, 8, 3}, .mirror = true, .broken = broken});
}

std::vector<int32_t> labels_of(const EncodedSamples& samples) {
  std::vector<int32_t> labels;
  for (int64_t i = 0; i < samples.size(); ++i) labels.push_back(samples.label(i));
  return labels;
}

TEST(ImageFolder, ReadsClassesAndFilesInTheOrderOfTheirNames) {
  const TemporaryFolder folder;
  write_classes(folder.path());
  write_picture(folder / "cat" / "more" / "0.JPEG", 1);
  write_file(folder / "cat" / "notes.txt", "no image");
  write_file(folder / "README", "no class");
  const auto samples = open_image_folder(folder.path(), {.test_share = 0});
  EXPECT_EQ(samples->class_names(), (std::vector<std::string>{"cat", "dog", "owl"}));
  EXPECT_EQ(labels_of(*samples), (std::vector<int32_t>{0, 0, 0, 0, 0, 1, 1, 1, 1, 1, 2, 2, 2, 2, 2, 2}));
  EXPECT_TRUE(samples->name(0).ends_with("cat/0.jpg"));
  EXPECT_TRUE(samples->name(4).ends_with("cat/more/0.JPEG"));
  EXPECT_EQ(samples->bytes(3), read_file(folder / "cat" / "3.png"));
}

TEST(ImageFolder, HoldsOutAShareOfEachClass) {
  const TemporaryFolder folder;
  write_classes(folder.path());
  const auto test = open_image_folder(folder.path(), {.split = Split::test, .test_share = 0.4});
  const auto training = open_image_folder(folder.path(), {.split = Split::train, .test_share = 0.4});
  EXPECT_EQ(labels_of(*test), (std::vector<int32_t>{0, 1, 1, 2, 2}));
  std::set<std::string> names;
  for (const auto& part : {test, training})
    for (int64_t i = 0; i < part->size(); ++i) names.insert(part->name(i));
  EXPECT_EQ(names.size(), 15U);
  EXPECT_ERROR(open_image_folder(folder.path(), {.split = Split::test, .test_share = 0.01}),
               ErrorCode::invalid_file, "leave none for the test");
  EXPECT_ERROR(open_image_folder(folder.path(), {.test_share = 1}), ErrorCode::invalid_argument, "is 1");
}

TEST(ImageFolder, KnowsItsParts) {
  const TemporaryFolder folder;
  write_classes(folder / "train");
  write_picture(folder / "val" / "owl" / "1.jpg", 3);
  const auto test = open_image_folder(folder.path(), {.split = Split::test});
  EXPECT_EQ(labels_of(*test), std::vector<int32_t>{2});  // by the classes of the training
  EXPECT_EQ(open_image_folder(folder.path())->size(), 15);
  write_picture(folder / "val" / "emu" / "1.jpg", 3);
  EXPECT_ERROR(open_image_folder(folder.path(), {.split = Split::test}), ErrorCode::invalid_file, "emu",
               "no such class");
  fs::remove_all(folder / "val");
  EXPECT_ERROR(open_image_folder(folder.path(), {.split = Split::test}), ErrorCode::invalid_file, "none for",
               "'val'");
}

TEST(ImageFolder, RefusesWhatLeadsOutAndWhatIsNone) {
  const TemporaryFolder folder;
  EXPECT_ERROR(open_image_folder(folder / "nowhere"), ErrorCode::io, "nowhere", "no such folder");
  EXPECT_ERROR(open_image_folder(folder.path()), ErrorCode::invalid_file, "holds no images");
  write_classes(folder / "in");
  write_picture(folder / "out.jpg", 1);
  fs::create_symlink("0.jpg", folder / "in" / "cat" / "inside.jpg");
  EXPECT_EQ(open_image_folder(folder / "in", {.test_share = 0})->size(), 16);
  fs::create_symlink("../../out.jpg", folder / "in" / "cat" / "link.jpg");
  EXPECT_ERROR(open_image_folder(folder / "in"), ErrorCode::invalid_file, "link.jpg", "out of the folder");
  fs::remove(folder / "in" / "cat" / "link.jpg");
  fs::create_directory_symlink(folder / "in" / "dog", folder / "in" / "cat" / "loop");
  EXPECT_ERROR(open_image_folder(folder / "in"), ErrorCode::invalid_file, "loop", "to a folder");
}

// Broken in every way that a folder has them.
void break_some(const fs::path& folder) {
  const std::vector<std::byte> whole = read_file(folder / "cat" / "0.jpg");
  write_file(folder / "cat" / "1_empty.jpg", "");
  write_file(folder / "cat" / "2_text.png", "this is no image");
  write_file(folder / "cat" / "3_cut.jpg", std::span(whole).first(whole.size() / 2));
  fs::create_directories(folder / "dog");
  write_file(folder / "dog" / "9_png.jpg", read_file(folder / "cat" / "1.png"));  // another ending: good
}

TEST(EncodedDataset, DealsWithBrokenSamplesAsAsked) {
  const TemporaryFolder folder;
  write_classes(folder.path());
  break_some(folder.path());
  const auto samples = open_image_folder(folder.path(), {.test_share = 0});
  ASSERT_EQ(samples->size(), 19);
  std::vector<uint8_t> image(8 * 8 * 3, 7);
  int32_t label = 5;
  EXPECT_ERROR(dataset_of(samples)->read(2, image, label), ErrorCode::invalid_file, "1_empty.jpg", "empty");
  const auto skipping = dataset_of(samples, BrokenSamples::skip);
  int64_t skipped = 0;
  for (int64_t i = 0; i < samples->size(); ++i) {
    skipping->read_random(i, {.seed = 1}, image, label);
    skipped += label < 0 ? 1 : 0;
    EXPECT_EQ(label < 0, std::ranges::all_of(
                             image, [](uint8_t value) { return value == 0; }));
  }
  EXPECT_EQ(skipped, 3);
  ASSERT_EQ(skipping->remarks().size(), 1U);
  EXPECT_NE(skipping->remarks()[0].find("3 of 19 samples could not be read and were skipped"),
            std::string::npos);
  const auto replacing = dataset_of(samples, BrokenSamples::replace);
  std::vector<uint8_t> next(image.size());
  for (const int64_t broken : {2, 4}) {  // 1.png, 1_empty.jpg, 2.jpg, 2_text.png, 3.png, 3_cut.jpg
    replacing->read(broken, image, label);
    EXPECT_EQ(label, 0);
    EXPECT_EQ(replacing->label(broken), 0);
    replacing->read(broken + 1, next, label);
    EXPECT_EQ(image, next);
  }
  EXPECT_TRUE(dataset_of(samples)->remarks().empty());
}

TEST(EncodedDataset, GivesUpWhereNothingCanBeRead) {
  const TemporaryFolder folder;
  for (int i = 0; i < 3; ++i) {
    fs::create_directories(folder / "cat");
    write_file(folder / "cat" / fmt::format("{}.jpg", i), "no image");
  }
  const auto dataset =
      dataset_of(open_image_folder(folder.path(), {.test_share = 0}), BrokenSamples::replace);
  std::vector<uint8_t> image(8 * 8 * 3);
  int32_t label = 0;
  EXPECT_ERROR(dataset->read(1, image, label), ErrorCode::invalid_file, "none of 3 samples");
}

Loader loader_of(std::shared_ptr<const Dataset> dataset, int64_t workers) {
  return {std::move(dataset),
          {.batch_size = 4, .drop_last = false, .seed = 9, .workers = workers},
          {.random_views = true}};
}

void expect_same_batches(Stream& a, Stream& b) {
  while (true) {
    const std::optional<Batch> left = a.next();
    const std::optional<Batch> right = b.next();
    ASSERT_EQ(left.has_value(), right.has_value());
    if (!left.has_value()) return;
    EXPECT_EQ(left->indices, right->indices);
    for (const char* name : {"images", "labels"})
      EXPECT_TRUE(left->fields.at(name).identical(right->fields.at(name))) << name;
  }
}

TEST(EncodedDataset, GivesTheSameBatchesWhateverTheThreadsAndTheContainer) {
  const TemporaryFolder folder;
  write_classes(folder / "files");
  const auto files = open_image_folder(folder / "files", {.test_share = 0});
  pack_shards(*files, folder / "shards", {.shard_bytes = 6000});
  const Loader expected = loader_of(dataset_of(files), 0);
  for (const int64_t workers : {1, 3})
    expect_same_batches(*expected.open({.epoch = 2}),
                        *loader_of(dataset_of(files), workers).open({.epoch = 2}));
  const Loader sharded = loader_of(dataset_of(open_tar_shards(folder / "shards", {.test_share = 0})), 2);
  expect_same_batches(*expected.open({.epoch = 2}), *sharded.open({.epoch = 2}));
  // In the middle of an epoch as if it had never stopped.
  const auto whole = expected.open({.epoch = 1});
  whole->next();
  whole->next();
  expect_same_batches(*whole, *sharded.open({.epoch = 1, .batch = 2}));
  EXPECT_FALSE(expected.open({.epoch = 0})
                   ->next()
                   ->fields.at("images")
                   .identical(expected.open({.epoch = 1})->next()->fields.at("images")));
}

std::shared_ptr<const EncodedDataset> keeping(std::shared_ptr<const EncodedSamples> samples, KeptSamples keep,
                                              int64_t bytes) {
  return std::make_shared<EncodedDataset>(
      std::move(samples),
      EncodedDatasetOptions{.image_shape = {8, 8, 3}, .mirror = true, .keep = keep, .keep_bytes = bytes});
}

// No batch depends on what there was room for.
TEST(EncodedDataset, GivesTheSameBatchesWhateverIsKept) {
  constexpr int64_t kAmple = int64_t{1} << 24;
  const TemporaryFolder folder;
  write_classes(folder.path());
  write_picture(folder / "owl" / "large.jpg", 3, 90, 120);  // whose crops are decoded at a reduced scale
  const auto samples = open_image_folder(folder.path(), {.test_share = 0});
  const auto one_byte = loader_of(keeping(samples, KeptSamples::pixels, 1), 2);
  for (const KeptSamples keep : {KeptSamples::files, KeptSamples::pixels}) {
    const Loader expected = keep == KeptSamples::files ? loader_of(dataset_of(samples), 2) : one_byte;
    for (const int64_t bytes : {int64_t{3000}, kAmple}) {
      const auto kept = keeping(samples, keep, bytes);
      const Loader loader = loader_of(kept, 3);
      for (int64_t epoch = 0; epoch < 3; ++epoch)
        expect_same_batches(*expected.open({.epoch = epoch}), *loader.open({.epoch = epoch}));
      ASSERT_EQ(kept->remarks().size(), 1U);
      EXPECT_EQ(kept->remarks()[0].starts_with("16 of 16 images are kept in memory"), bytes == kAmple)
          << kept->remarks()[0];
    }
  }
}

TEST(EncodedDataset, ReadsWhatIsKeptNoSecondTime) {
  for (const KeptSamples keep : {KeptSamples::files, KeptSamples::pixels}) {
    const TemporaryFolder folder;
    write_classes(folder.path());
    const auto samples = open_image_folder(folder.path(), {.test_share = 0});
    const auto size = static_cast<int64_t>(samples->bytes(0).size());
    const bool files = keep == KeptSamples::files;
    // Room for the first, by its file or its 20 x 24 pixels of three channels, and for no second.
    const auto dataset = keeping(samples, keep, files ? size + 10 : 20 * 24 * 3 + 10);
    std::vector<uint8_t> image(8 * 8 * 3);
    std::vector<uint8_t> again(image.size());
    int32_t label = 0;
    dataset->read(0, image, label);
    dataset->read(1, again, label);
    EXPECT_NE(dataset->remarks()[0].find(
                  fmt::format("1 of 15 images are kept in memory {}", files ? "as their files" : "decoded")),
              std::string::npos);
    for (const auto& entry : fs::recursive_directory_iterator(folder.path()))
      if (entry.is_regular_file()) write_file(entry.path(), "gone");
    dataset->read(0, again, label);
    EXPECT_EQ(image, again);
    EXPECT_ERROR(dataset->read(1, again, label), ErrorCode::invalid_file, "cat/1.png");
  }
}

// The upper rows of such a file can be read, and so they are, whether or not there was room for all of it.
TEST(EncodedDataset, KeepsNoBrokenImage) {
  const TemporaryFolder folder;
  write_picture(folder / "cat" / "whole.jpg", 1, 400, 300);
  const std::vector<std::byte> whole = read_file(folder / "cat" / "whole.jpg");
  write_file(folder / "cat" / "cut.jpg", std::span(whole).first(whole.size() - 200));
  const auto samples = open_image_folder(folder.path(), {.test_share = 0});
  std::vector<std::vector<uint8_t>> images;
  for (const int64_t bytes : {int64_t{1}, int64_t{1} << 24}) {
    const EncodedDataset dataset(
        samples,
        {.image_shape = {8, 8, 3}, .center_share = 0.2, .keep = KeptSamples::pixels, .keep_bytes = bytes});
    int32_t label = 0;
    dataset.read(0, images.emplace_back(8 * 8 * 3), label);
    EXPECT_TRUE(dataset.remarks()[0].starts_with("0 of 2 images")) << dataset.remarks()[0];
  }
  EXPECT_EQ(images[0], images[1]);
}

TEST(EncodedDataset, CutsTheMiddleWhereNothingIsRandom) {
  const TemporaryFolder folder;
  write_picture(folder / "cat" / "1.png", 1, 40, 60);
  const auto dataset = dataset_of(open_image_folder(folder.path(), {.test_share = 0}));
  std::vector<uint8_t> image(8 * 8 * 3);
  int32_t label = 0;
  dataset->read(0, image, label);
  // Of 40 rows the middle 35, of 60 columns the middle 35: the first pixel's center is 2.1875 in.
  EXPECT_NEAR(image[1], 255 * (12.5 + 35.0 / 16 - 0.5) / 60, 2);
  EXPECT_NEAR(image[2], 255 * (2.5 + 35.0 / 16 - 0.5) / 40, 2);
}

// Of a file's beginning, if its header ends there: what follows may be broken, and of a long header all is
// read.
TEST(EncodedDataset, KnowsTheRatioByTheHeader) {
  const TemporaryFolder folder;
  constexpr int64_t kLong = 70000;
  const std::vector<std::byte> plain = encode_jpeg(picture(1, 300, 600), {300, 600, 3}, 100);
  ASSERT_GT(std::ssize(plain), 0);
  fs::create_directories(folder / "cat");
  // Two comments after the first marker, longer than what is read at first.
  std::vector<std::byte> commented(plain.begin(), plain.begin() + 2);
  for (int i = 0; i < 2; ++i) {
    const auto size = static_cast<size_t>(kLong / 2);
    for (const size_t value : {size_t{0xFF}, size_t{0xFE}, size >> 8, size & 0xFF})
      commented.push_back(static_cast<std::byte>(value));
    commented.insert(commented.end(), size - 2, std::byte{'x'});
  }
  commented.insert(commented.end(), plain.begin() + 2, plain.end());
  write_file(folder / "cat" / "commented.jpg", commented);
  write_file(folder / "cat" / "long.jpg", encode_jpeg(noise(400, 500), {400, 500, 3}, 100));
  write_file(folder / "cat" / "none.jpg", "no image");
  const auto samples = open_image_folder(folder.path(), {.test_share = 0});
  ASSERT_GT(std::ssize(samples->bytes(1)), int64_t{1} << 17);
  EXPECT_EQ(std::ssize(samples->first_bytes(1, 1000)), 1000);
  pack_shards(*samples, folder / "shards");
  for (const auto& all : {samples, open_tar_shards(folder / "shards", {.test_share = 0})}) {
    const EncodedDataset dataset(all, {.image_shape = {8, 8, 3}});
    EXPECT_EQ(dataset.ratio(0), 2);
    EXPECT_EQ(dataset.ratio(1), 1.25);
    EXPECT_EQ(dataset.ratio(2), 1);
    EXPECT_EQ(all->first_bytes(0, 50), std::vector(commented.begin(), commented.begin() + 50));
    EXPECT_EQ(all->first_bytes(2, 50).size(), 8U);
  }
}

TEST(EncodedDataset, IsSeenInAnotherShape) {
  const TemporaryFolder folder;
  write_picture(folder / "cat" / "1.png", 1, 40, 60);
  const auto dataset = dataset_of(open_image_folder(folder.path(), {.test_share = 0}));
  const auto wide = dataset->reshaped({8, 12, 3});
  EXPECT_EQ(wide->image_shape(), (Shape{8, 12, 3}));
  std::vector<uint8_t> image(8 * 12 * 3);
  int32_t label = 5;
  wide->read(0, image, label);
  EXPECT_EQ(label, 0);
  const Rectangle middle = center_crop(40, 60, 0.875, 1.5);
  EXPECT_EQ(middle.height, 35);
  const double first = static_cast<double>(middle.left) + static_cast<double>(middle.width) / 24 - 0.5;
  EXPECT_NEAR(image[1], 255 * first / 60, 2);
}

TEST(EncodedDataset, RefusesWhatDoesNotFit) {
  const TemporaryFolder folder;
  write_picture(folder / "cat" / "1.png", 1);
  const auto samples = open_image_folder(folder.path(), {.test_share = 0});
  const auto make = [&](const EncodedDatasetOptions& options) { EncodedDataset(samples, options); };
  const auto code = ErrorCode::invalid_argument;
  EXPECT_ERROR(make({.image_shape = {8, 8, 2}}), code, "[8, 8, 2]");
  EXPECT_ERROR(make({.center_share = 0}), code, "the middle that is kept is 0");
  EXPECT_ERROR(make({.crop = {.minimum_share = 0}}), code, "from 0 to 1 of the area");
  EXPECT_ERROR(make({.crop = {.minimum_ratio = 2}}), code, "width/height is from 2");
  EXPECT_ERROR(make({.keep = KeptSamples::files, .keep_bytes = 0}), code, "a cache of 0 bytes");
}

}  // namespace
}  // namespace tessera::data
