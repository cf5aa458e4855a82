#include "tessera/data/loader.h"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <set>
#include <string>
#include <thread>

#include <gtest/gtest.h>

#include "tessera/data/order.h"

#include "support/expect_error.h"

namespace tessera::data {
namespace {

std::shared_ptr<const Dataset> synthetic(int64_t size) {
  return std::make_shared<SyntheticDataset>(
      SyntheticOptions{.size = size, .image_shape = {6, 5, 3}, .classes = 4, .seed = 1});
}

constexpr int64_t kFaultyExample = 57;

// Counts its readers' calls, is slow now and then, and may throw at one example.
class UnevenDataset : public SyntheticDataset {
 public:
  explicit UnevenDataset(int64_t size, bool faulty = false)
      : SyntheticDataset({.size = size, .image_shape = {2, 2, 1}, .classes = 4}), faulty_(faulty) {}
  void read(int64_t index, std::span<float> image, int32_t& label) const override {
    ++reads_;
    if (index % 13 == 0) std::this_thread::sleep_for(std::chrono::microseconds(200));
    if (faulty_ && index == kFaultyExample) fail(ErrorCode::invalid_file, "image {} is broken", index);
    SyntheticDataset::read(index, image, label);
  }
  int64_t reads() const { return reads_; }

 private:
  bool faulty_;
  mutable std::atomic<int64_t> reads_{0};
};

std::vector<Batch> collect(Epoch epoch) {
  std::vector<Batch> batches;
  while (std::optional<Batch> batch = epoch.next()) batches.push_back(std::move(*batch));
  return batches;
}

void expect_same(const Batch& a, const Batch& b) {
  EXPECT_EQ(a.number, b.number);
  EXPECT_EQ(a.valid, b.valid);
  EXPECT_EQ(a.indices, b.indices);
  EXPECT_TRUE(a.images.identical(b.images));
  EXPECT_TRUE(a.labels.identical(b.labels));
}

LoaderOptions augmented() {
  return {.batch_size = 8,
          .drop_last = false,
          .seed = 3,
          .augmentation = {.crop_padding = 1, .horizontal_flip = true, .mean = {0.5f}, .deviation = {0.3f}}};
}

TEST(Loader, EveryExampleOnceInShuffledOrder) {
  const Loader loader(synthetic(100), {.batch_size = 8, .drop_last = false, .seed = 4});
  EXPECT_EQ(loader.batches_per_epoch(), 13);
  std::vector<int64_t> seen;
  for (const Batch& batch : collect(loader.epoch(2))) {
    EXPECT_EQ(batch.images.shape(), (Shape{8, 6, 5, 3}));
    EXPECT_EQ(batch.labels.shape(), (Shape{8}));
    seen.insert(seen.end(), batch.indices.begin(), batch.indices.end());
  }
  EXPECT_EQ(seen, shuffled_order(100, 4, 2));
}

TEST(Loader, RowsAreTheExamplesTheyAreSaidToBe) {
  const auto dataset = synthetic(40);
  const Loader loader(dataset, {.batch_size = 10, .seed = 4});
  std::vector<float> image(90);
  for (const Batch& batch : collect(loader.epoch(0))) {
    for (size_t row = 0; row < batch.indices.size(); ++row) {
      int32_t label = -1;
      dataset->read(batch.indices[row], image, label);
      EXPECT_EQ(batch.labels.data<int32_t>()[row], label);
      const auto pixels = batch.images.data<float>().subspan(row * 90, 90);
      EXPECT_TRUE(std::equal(pixels.begin(), pixels.end(), image.begin()));
    }
  }
}

TEST(Loader, WorkersAndPrefetchDoNotChangeABit) {
  const auto dataset = synthetic(100);
  LoaderOptions options = augmented();
  options.workers = 0;
  const std::vector<Batch> expected = collect(Loader(dataset, options).epoch(5));
  for (int64_t workers : {1, 2, 5}) {
    for (int64_t prefetch : {1, 3, 50}) {
      options.workers = workers;
      options.prefetch = prefetch;
      const std::vector<Batch> batches = collect(Loader(dataset, options).epoch(5));
      ASSERT_EQ(batches.size(), expected.size());
      for (size_t i = 0; i < batches.size(); ++i) expect_same(batches[i], expected[i]);
    }
  }
}

TEST(Loader, ResumingInTheMiddleContinuesBitForBit) {
  const Loader loader(synthetic(100), augmented());
  const std::vector<Batch> whole = collect(loader.epoch(1));
  const Loader after_restart(synthetic(100), augmented());
  for (int64_t first : {0, 1, 7, 12, 13}) {
    const std::vector<Batch> rest = collect(after_restart.epoch(1, first));
    ASSERT_EQ(rest.size(), whole.size() - static_cast<size_t>(first));
    for (size_t i = 0; i < rest.size(); ++i) expect_same(rest[i], whole[i + static_cast<size_t>(first)]);
  }
  EXPECT_ERROR(loader.epoch(1, 14), ErrorCode::invalid_argument, "first_batch is 14", "13 batches");
  EXPECT_ERROR(loader.epoch(1, -1), ErrorCode::invalid_argument, "first_batch is -1");
}

TEST(Loader, EpochsDiffer) {
  const Loader loader(synthetic(100), augmented());
  EXPECT_NE(collect(loader.epoch(0))[0].indices, collect(loader.epoch(1))[0].indices);
}

TEST(Loader, TheLastBatchIsPaddedOrDropped) {
  LoaderOptions options{.batch_size = 8, .shuffle = false, .drop_last = false, .padding_label = -100};
  const std::vector<Batch> padded = collect(Loader(synthetic(19), options).epoch(0));
  ASSERT_EQ(padded.size(), 3u);
  const Batch& last = padded.back();
  EXPECT_EQ(last.valid, 3);
  EXPECT_EQ(last.indices, (std::vector<int64_t>{16, 17, 18}));
  EXPECT_EQ(last.images.shape()[0], 8);
  for (float value : last.images.data<float>().subspan(3 * 90)) EXPECT_EQ(value, 0);
  for (int32_t label : last.labels.data<int32_t>().subspan(3)) EXPECT_EQ(label, -100);

  options.drop_last = true;
  EXPECT_EQ(collect(Loader(synthetic(19), options).epoch(0)).size(), 2u);
  options.drop_last = false;
  EXPECT_EQ(collect(Loader(synthetic(16), options).epoch(0)).back().valid, 8);
}

TEST(Loader, AWorkersErrorArrivesInItsTurn) {
  for (int64_t workers : {0, 1, 4}) {
    const Loader loader(std::make_shared<UnevenDataset>(200, true),
                        {.batch_size = 10, .shuffle = false, .workers = workers});
    Epoch epoch = loader.epoch(0);
    for (int64_t i = 0; i < kFaultyExample / 10; ++i) ASSERT_EQ(epoch.next()->number, i);
    EXPECT_ERROR(epoch.next(), ErrorCode::invalid_file, "image 57 is broken");
    EXPECT_ERROR(epoch.next(), ErrorCode::invalid_file, "image 57 is broken");
  }
}

TEST(Loader, PrefetchIsBounded) {
  const auto dataset = std::make_shared<UnevenDataset>(1000);
  const Loader loader(dataset, {.batch_size = 10, .workers = 2, .prefetch = 3});
  Epoch epoch = loader.epoch(0);
  std::this_thread::sleep_for(std::chrono::milliseconds(50));
  EXPECT_LE(dataset->reads(), 30);
  epoch.next();
  std::this_thread::sleep_for(std::chrono::milliseconds(50));
  EXPECT_LE(dataset->reads(), 40);
}

// For the thread sanitizer above all.
TEST(Loader, SurvivesEarlyEndsAndManyThreads) {
  for (int round = 0; round < 40; ++round) {
    Epoch survivor = [&] {
      const Loader loader(
          std::make_shared<UnevenDataset>(300, round % 4 == 3),
          {.batch_size = 7, .drop_last = false, .workers = 1 + round % 6, .prefetch = 1 + round % 5});
      Epoch abandoned = loader.epoch(0);
      Epoch other = loader.epoch(1);
      abandoned = loader.epoch(2);  // ends the first while it works
      for (int i = 0; i < round % 5; ++i) {
        try {
          abandoned.next();
        } catch (const Error&) {
        }
      }
      return other;
    }();
    if (round % 4 == 3) {
      EXPECT_ERROR(collect(std::move(survivor)), ErrorCode::invalid_file, "broken");
    } else {
      EXPECT_EQ(collect(std::move(survivor)).size(), 43u);
    }
  }
}

TEST(Loader, RefusalsNameTheOption) {
  const auto code = ErrorCode::invalid_argument;
  EXPECT_ERROR(Loader(nullptr, {}), code, "data set");
  EXPECT_ERROR(Loader(synthetic(10), {.batch_size = 0}), code, "batch_size is 0");
  EXPECT_ERROR(Loader(synthetic(10), {.batch_size = 11}), code, "10 examples", "batch of 11", "drop_last");
  EXPECT_ERROR(Loader(synthetic(10), {.batch_size = 5, .workers = -1}), code, "workers is -1");
  EXPECT_ERROR(Loader(synthetic(10), {.batch_size = 5, .prefetch = 0}), code, "prefetch is 0");
  EXPECT_ERROR(Loader(synthetic(10), {.batch_size = 5, .augmentation = {.crop_padding = 9}}), code,
               "crop_padding");
}

}  // namespace
}  // namespace tessera::data
