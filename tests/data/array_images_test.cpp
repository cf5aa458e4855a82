// Images that are stored as numbers: arrays of NumPy's, and records of bytes.
#include <cstdint>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "tessera/base/file.h"
#include "tessera/data/npy.h"
#include "tessera/data/registry.h"

#include "support/expect_error.h"
#include "support/temporary_folder.h"
#include "test_folder.h"

namespace tessera::data {
namespace {

using testing::TemporaryFolder;

constexpr ErrorCode kInvalid = ErrorCode::invalid_file;

std::shared_ptr<const Dataset> open(const std::string& kind, const std::filesystem::path& path, Split split,
                                    const std::vector<std::pair<std::string, OptionValue>>& values = {}) {
  const ImageSetDescription& set = image_sets().get(kind);
  Options options;
  for (const Option& option : set.options) {
    if (option.unset.empty()) options.set(option.key, option.value);
  }
  options.set("path", path.string());
  for (const auto& [key, value] : values) options.set(key, value);
  return set.open(options, {.split = split, .image_shape = {2, 2, 3}, .classes = 3});
}

std::vector<int> pixels_of(const Dataset& set, int64_t index, int32_t& label) {
  std::vector<uint8_t> image(static_cast<size_t>(element_count(set.image_shape())));
  set.read(index, image, label);
  EXPECT_EQ(set.label(index), label);
  return {image.begin(), image.end()};
}

std::vector<int> counted(int first) {
  std::vector<int> values;
  for (int i = 0; i < 12; ++i) values.push_back(first + i);
  return values;
}

TEST(NumpyImages, AreReadFromWhatNumpyWrites) {
  const auto training = open("npz", TESSERA_TEST_FOLDER "/golden/images.npz", Split::train);
  ASSERT_EQ(training->size(), 3);
  EXPECT_EQ(training->image_shape(), (Shape{2, 2, 3}));
  EXPECT_EQ(training->class_count(), 3);
  int32_t label = -1;
  EXPECT_EQ(pixels_of(*training, 2, label), counted(24));
  EXPECT_EQ(label, 1);
  const auto test = open("npz", TESSERA_TEST_FOLDER "/golden/images.npz", Split::test);
  ASSERT_EQ(test->size(), 2);
  EXPECT_EQ(pixels_of(*test, 1, label), counted(112));
  EXPECT_EQ(label, 2);
}

TEST(NumpyImages, AreReadFromAFolderOfArrays) {
  const TemporaryFolder folder;
  write_npy(folder / "train_images.npy", Tensor::from<uint8_t>({2, 1, 2}, {1, 2, 3, 4}));
  write_npy(folder / "train_labels.npy", Tensor::from<uint8_t>({2}, {1, 0}));
  const auto training = open("npz", folder.path(), Split::train);
  EXPECT_EQ(training->image_shape(), (Shape{1, 2, 1}));
  int32_t label = -1;
  EXPECT_EQ(pixels_of(*training, 0, label), (std::vector<int>{1, 2}));
  EXPECT_EQ(label, 1);
  EXPECT_ERROR(open("npz", folder.path(), Split::test), kInvalid,
               "holds neither 'test_images' and 'test_labels' nor 'x_test' and 'y_test'");
}

TEST(NumpyImages, FaultsNameTheFile) {
  const TemporaryFolder folder;
  const auto write = [&](const Tensor& images, const Tensor& labels) {
    write_npy(folder / "x_train.npy", images);
    write_npy(folder / "y_train.npy", labels);
  };
  const auto faults = [&](const std::string& what) {
    EXPECT_ERROR(open("npz", folder.path(), Split::train), kInvalid, folder.path().string(), what);
  };
  const Tensor images = Tensor::from<uint8_t>({2, 1, 1}, {1, 2});
  write(images, Tensor::from<float>({2}, {0, 1}));
  faults("labels must be integers, got fp32");
  write(images, Tensor::from<int64_t>({2, 2}, {0, 1, 2, 3}));
  faults("labels must have shape [N] or [N, 1], got [2, 2]");
  write(images, Tensor::from<int64_t>({2}, {0, int64_t{1} << 32}));
  faults("label 4294967296 of example 1");
  write(images, Tensor::from<int8_t>({2}, {0, -1}));
  faults("label -1 of example 1");
  write(images, Tensor::from<uint8_t>({3}, {0, 1, 2}));
  faults("2 images but 3 labels");
  write(Tensor::from<float>({2, 1, 1}, {1, 2}), Tensor::from<uint8_t>({2}, {0, 1}));
  faults("images must be uint8");
  EXPECT_ERROR(open("npz", folder / "none.npz", Split::train), ErrorCode::io, "none.npz");
}

// A label, then all reds, greens and blues.
std::string planes(int label, int first) {
  std::string record(1, static_cast<char>(label));
  for (int channel = 0; channel < 3; ++channel) {
    for (int pixel = 0; pixel < 4; ++pixel) record += static_cast<char>(first + 3 * pixel + channel);
  }
  return record;
}

TEST(BinaryImages, AreThoseOfCifarsFiles) {
  const TemporaryFolder folder;
  for (int i = 0; i < 5; ++i) {
    write_file(folder / ("data_batch_" + std::to_string(i + 1) + ".bin"),
               planes(i % 3, 20 * i) + planes((i + 1) % 3, 20 * i + 7));
  }
  write_file(folder / "test_batch.bin", planes(2, 240));
  write_file(folder / "classes.txt", "cat\ndog\nbird\n");
  const auto training = open("binary", folder.path(), Split::train);
  ASSERT_EQ(training->size(), 10);
  EXPECT_EQ(training->class_names(), (std::vector<std::string>{"cat", "dog", "bird"}));
  for (int i = 0; i < 10; ++i) {
    int32_t label = -1;
    EXPECT_EQ(pixels_of(*training, i, label), counted(20 * (i / 2) + 7 * (i % 2))) << i;
    EXPECT_EQ(label, (i / 2 + i % 2) % 3) << i;
  }
  int32_t label = -1;
  EXPECT_EQ(pixels_of(*open("binary", folder.path(), Split::test), 0, label), counted(240));
  EXPECT_EQ(label, 2);
}

TEST(BinaryImages, HaveTheirPartsWhereverTheOptionsSay) {
  const TemporaryFolder folder;
  std::string record = "??";
  for (int value : counted(1)) record += static_cast<char>(value);
  record += std::string("\x02\x00", 2);  // the label, after the pixels
  write_file(folder / "all.raw", record + record);
  const std::vector<std::pair<std::string, OptionValue>> values{
      {"train_files", std::vector<std::string>{"all.raw"}},
      {"label_at", int64_t{14}},
      {"label_bytes", int64_t{2}},
      {"pixels_at", int64_t{2}},
      {"planes", false}};
  const auto training = open("binary", folder.path(), Split::train, values);
  ASSERT_EQ(training->size(), 2);
  EXPECT_EQ(training->class_names(), (std::vector<std::string>{"0", "1", "2"}));
  int32_t label = -1;
  EXPECT_EQ(pixels_of(*training, 1, label), counted(1));
  EXPECT_EQ(label, 2);
}

TEST(BinaryImages, FaultsNameTheFile) {
  const TemporaryFolder folder;
  const std::vector<std::pair<std::string, OptionValue>> one{
      {"train_files", std::vector<std::string>{"a.bin"}}};
  EXPECT_ERROR(open("binary", folder.path(), Split::train, one), ErrorCode::io, "a.bin");
  write_file(folder / "a.bin", planes(0, 0) + "x");
  EXPECT_ERROR(open("binary", folder.path(), Split::train, one), kInvalid, "a.bin",
               "14 bytes are no whole number of records of 13");
  write_file(folder / "a.bin", "");
  EXPECT_ERROR(open("binary", folder.path(), Split::train, one), kInvalid, "a.bin", "0 bytes");
  write_file(folder / "a.bin", planes(0, 0) + planes(3, 0));
  const auto set = open("binary", folder.path(), Split::train, one);
  EXPECT_ERROR(set->label(1), kInvalid, "a.bin", "from byte 13 on has label 3", "3 classes");
  EXPECT_ERROR(
      open("binary", folder.path(), Split::train, {{"train_files", std::vector<std::string>{"../a.bin"}}}),
      ErrorCode::invalid_argument, "'data.train_files': '../a.bin' is not below the folder");
  EXPECT_ERROR(open("binary", folder.path(), Split::train, {one[0], {"label_at", int64_t{4}}}),
               ErrorCode::invalid_argument, "lies within");
}

}  // namespace
}  // namespace tessera::data
