#include "tessera/data/dataset.h"

#include <cstdlib>
#include <limits>
#include <set>
#include <string>

#include <gtest/gtest.h>

#include "tessera/base/file.h"
#include "tessera/data/idx.h"

#include "support/expect_error.h"
#include "support/temporary_folder.h"

namespace tessera::data {
namespace {

using testing::TemporaryFolder;

const Tensor kImages = Tensor::from<uint8_t>({2, 1, 3}, {0, 51, 255, 1, 2, 3});
const Tensor kLabels = Tensor::from<uint8_t>({2}, {4, 1});

void write_pair(const TemporaryFolder& folder, const Tensor& images, const Tensor& labels) {
  write_file(folder / "train-images-idx3-ubyte", to_idx(images));
  write_file(folder / "train-labels-idx1-ubyte.gz", gzip(to_idx(labels)));
}

TEST(ClassificationDataset, ReadsPixelsAndLabels) {
  const ClassificationDataset dataset(kImages, kLabels);
  EXPECT_EQ(dataset.size(), 2);
  EXPECT_EQ(dataset.image_shape(), (Shape{1, 3, 1}));
  EXPECT_EQ(dataset.class_count(), 5);
  EXPECT_EQ(dataset.class_names()[4], "4");
  std::vector<uint8_t> image(3);
  int32_t label = -1;
  dataset.read(0, image, label);
  EXPECT_EQ(image, (std::vector<uint8_t>{0, 51, 255}));
  EXPECT_EQ(label, 4);
}

TEST(ClassificationDataset, RefusesWhatDoesNotFit) {
  const auto code = ErrorCode::invalid_argument;
  const Tensor three = Tensor::from<uint8_t>({3}, {0, 0, 0});
  EXPECT_ERROR(ClassificationDataset(kImages, three), code, "2 images but 3 labels");
  EXPECT_ERROR(ClassificationDataset(kLabels, kLabels), code, "[N, H, W]", "[2]");
  EXPECT_ERROR(ClassificationDataset(kImages.cast(DataType::fp32), kLabels), code, "uint8", "fp32");
  EXPECT_ERROR(ClassificationDataset(kImages, kLabels.cast(DataType::fp32)), code, "labels", "fp32");
  EXPECT_ERROR(ClassificationDataset(kImages, kImages), code, "labels", "[2, 1, 3]");
  EXPECT_ERROR(ClassificationDataset(kImages, kLabels, {"cat", "dog"}), code, "label 4 of example 0",
               "2 classes");
  EXPECT_ERROR(ClassificationDataset(kImages, Tensor::from<int32_t>({2}, {0, -1}), {"cat"}), code,
               "label -1");
  EXPECT_ERROR(ClassificationDataset(Tensor(DataType::uint8, {0, 1, 1}), Tensor(DataType::uint8, {0})), code,
               "hold nothing");
  // Neither a name for each of two thousand million classes nor for one more than 32 bits count.
  for (const int32_t label : {2'000'000'000, std::numeric_limits<int32_t>::max()}) {
    EXPECT_ERROR(ClassificationDataset(kImages, Tensor::from<int32_t>({2}, {0, label})), code,
                 std::to_string(label), "example 1", "at most 1000000 classes");
  }
}

TEST(IdxFolder, PlainAndGzipAndColor) {
  const TemporaryFolder folder;
  write_pair(folder, kImages, kLabels);
  const auto dataset = load_idx_folder(folder.path(), {.class_names = fashion_mnist_class_names()});
  EXPECT_EQ(dataset.size(), 2);
  EXPECT_EQ(dataset.class_names()[4], "Coat");
  write_pair(folder, kImages.reshape({2, 1, 1, 3}), kLabels);
  EXPECT_EQ(load_idx_folder(folder.path()).image_shape(), (Shape{1, 1, 3}));
}

TEST(IdxFolder, FaultsNameTheFiles) {
  const TemporaryFolder folder;
  EXPECT_ERROR(load_idx_folder(folder / "absent"), ErrorCode::io, "absent", "no such folder");
  EXPECT_ERROR(load_idx_folder(folder.path()), ErrorCode::io, "train-images-idx3-ubyte", ".gz");
  write_pair(folder, kImages, Tensor::from<uint8_t>({1}, {0}));
  EXPECT_ERROR(load_idx_folder(folder.path()), ErrorCode::invalid_file, "train-images-idx3-ubyte",
               "train-labels-idx1-ubyte.gz", "2 images but 1 labels");
  EXPECT_ERROR(load_idx_folder(folder.path(), {.split = Split::test}), ErrorCode::io,
               "t10k-images-idx3-ubyte");
  write_pair(folder, kImages, Tensor::from<int32_t>({2}, {2'000'000'000, 0}));
  EXPECT_ERROR(load_idx_folder(folder.path()), ErrorCode::invalid_file, "train-labels-idx1-ubyte.gz",
               "2000000000");
  write_pair(folder, kImages, kImages);
  EXPECT_ERROR(load_idx_folder(folder.path()), ErrorCode::invalid_file, "labels must have shape [N]");
  write_file(folder / "train-images-idx3-ubyte", "garbage!");
  EXPECT_ERROR(load_idx_folder(folder.path()), ErrorCode::invalid_file, "train-images-idx3-ubyte",
               "not an IDX");
}

TEST(IdxFolder, FashionMnist) {
  const char* variable = std::getenv("TESSERA_FASHION_MNIST");
  const std::filesystem::path folder = variable != nullptr ? variable : "/usr/share/datasets/fashion-mnist";
  if (!std::filesystem::exists(folder)) GTEST_SKIP() << "no " << folder;
  for (const auto& [split, size] : {std::pair(Split::train, 60000), std::pair(Split::test, 10000)}) {
    const auto dataset = load_idx_folder(folder, {split, fashion_mnist_class_names()});
    EXPECT_EQ(dataset.size(), size);
    EXPECT_EQ(dataset.image_shape(), (Shape{28, 28, 1}));
    std::vector<int> counts(10);
    for (int32_t label : dataset.labels().data<int32_t>()) ++counts[static_cast<size_t>(label)];
    EXPECT_EQ(counts, std::vector<int>(10, size / 10));
  }
}

TEST(SyntheticDataset, IsFixedByItsSeed) {
  const SyntheticOptions options{.size = 100, .image_shape = {4, 5, 3}, .classes = 7, .seed = 3};
  const SyntheticDataset first(options);
  const SyntheticDataset second(options);
  EXPECT_EQ(first.class_count(), 7);
  std::vector<uint8_t> a(60), b(60);
  std::set<int32_t> labels;
  for (int64_t i = 0; i < first.size(); ++i) {
    int32_t label_a = -1, label_b = -1;
    first.read(i, a, label_a);
    second.read(i, b, label_b);
    EXPECT_EQ(a, b);
    EXPECT_EQ(label_a, label_b);
    labels.insert(label_a);
  }
  EXPECT_EQ(labels, (std::set<int32_t>{0, 1, 2, 3, 4, 5, 6}));
  EXPECT_ERROR(SyntheticDataset({.size = 0}), ErrorCode::invalid_argument, "needs examples");
  EXPECT_ERROR(SyntheticDataset({.image_shape = {3, 3}}), ErrorCode::invalid_argument, "[3, 3]");
}

}  // namespace
}  // namespace tessera::data
