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
  void read(int64_t index, std::span<uint8_t> image, int32_t& label) const override {
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

std::vector<Batch> collect(const std::unique_ptr<Stream>& stream) {
  std::vector<Batch> batches;
  while (std::optional<Batch> batch = stream->next()) batches.push_back(std::move(*batch));
  return batches;
}

const Tensor& images(const Batch& batch) {
  return batch.fields.at("images");
}
const Tensor& labels(const Batch& batch) {
  return batch.fields.at("labels");
}

void expect_same(const Batch& a, const Batch& b) {
  EXPECT_EQ(a.after, b.after);
  EXPECT_EQ(a.sizes, b.sizes);
  EXPECT_EQ(a.samples, b.samples);
  EXPECT_EQ(a.indices, b.indices);
  EXPECT_TRUE(images(a).identical(images(b)));
  EXPECT_TRUE(labels(a).identical(labels(b)));
}

constexpr BatchOptions kBatching{.batch_size = 8, .drop_last = false, .seed = 3};

Loader augmented(const std::shared_ptr<const Dataset>& dataset, const BatchOptions& batching = kBatching) {
  return {dataset, batching, {.augmentation = {.crop_padding = 1, .horizontal_flip = true}}};
}

TEST(Loader, EveryExampleOnceInShuffledOrder) {
  const Loader loader(synthetic(100), {.batch_size = 8, .drop_last = false, .seed = 4});
  EXPECT_EQ(loader.batches(0), 13);
  std::vector<int64_t> seen;
  for (const Batch& batch : collect(loader.open({.epoch = 2}))) {
    EXPECT_EQ(images(batch).shape(), (Shape{8, 6, 5, 3}));
    EXPECT_EQ(labels(batch).shape(), (Shape{8}));
    seen.insert(seen.end(), batch.indices.begin(), batch.indices.end());
  }
  EXPECT_EQ(seen, shuffled_order(100, 4, 2));
}

TEST(Loader, RowsAreTheExamplesTheyAreSaidToBe) {
  const auto dataset = synthetic(40);
  const Loader loader(dataset, {.batch_size = 10, .seed = 4});
  std::vector<uint8_t> image(90);
  for (const Batch& batch : collect(loader.open({.epoch = 0}))) {
    for (size_t row = 0; row < batch.indices.size(); ++row) {
      int32_t label = -1;
      dataset->read(batch.indices[row], image, label);
      EXPECT_EQ(labels(batch).data<int32_t>()[row], label);
      const auto pixels = images(batch).data<uint8_t>().subspan(row * 90, 90);
      EXPECT_TRUE(std::equal(pixels.begin(), pixels.end(), image.begin()));
    }
  }
}

TEST(Loader, WorkersAndPrefetchDoNotChangeABit) {
  const auto dataset = synthetic(100);
  BatchOptions options = kBatching;
  options.workers = 0;
  const std::vector<Batch> expected = collect(augmented(dataset, options).open({.epoch = 5}));
  for (int64_t workers : {1, 2, 5}) {
    for (int64_t prefetch : {1, 3, 50}) {
      options.workers = workers;
      options.prefetch = prefetch;
      const std::vector<Batch> batches = collect(augmented(dataset, options).open({.epoch = 5}));
      ASSERT_EQ(batches.size(), expected.size());
      for (size_t i = 0; i < batches.size(); ++i) expect_same(batches[i], expected[i]);
    }
  }
}

// Blocks come back with what earlier batches left in them.
TEST(Loader, WritesTheSameBatchesIntoMemoryOnTheWayToADevice) {
  BatchOptions options = kBatching;
  options.workers = 2;
  const Loader loader = augmented(synthetic(91), options);
  const std::vector<Batch> expected = collect(loader.open({.epoch = 5}));
  const auto memory = std::make_shared<BatchMemory>(Device::reference());
  for (int pass = 0; pass < 2; ++pass) {
    std::set<const void*> blocks;
    const auto stream = loader.open_into(memory, {.epoch = 5});
    size_t number = 0;
    while (std::optional<Batch> batch = stream->next()) {
      blocks.insert(images(*batch).raw());
      expect_same(*batch, expected.at(number++));
    }
    EXPECT_EQ(number, expected.size());
    EXPECT_LT(blocks.size(), expected.size());
  }
}

TEST(Loader, ResumingInTheMiddleContinuesBitForBit) {
  const Loader loader = augmented(synthetic(100));
  const std::vector<Batch> whole = collect(loader.open({.epoch = 1}));
  const Loader after_restart = augmented(synthetic(100));
  for (int64_t first : {0, 1, 7, 12, 13}) {
    const std::vector<Batch> rest = collect(after_restart.open({.epoch = 1, .batch = first}));
    ASSERT_EQ(rest.size(), whole.size() - static_cast<size_t>(first));
    for (size_t i = 0; i < rest.size(); ++i) expect_same(rest[i], whole[i + static_cast<size_t>(first)]);
  }
  EXPECT_ERROR(loader.open({.epoch = 1, .batch = 14}), ErrorCode::invalid_argument, "no batch 14 in epoch 1",
               "13 batches");
  EXPECT_ERROR(loader.open({.epoch = 1, .batch = -1}), ErrorCode::invalid_argument, "no batch -1");
}

TEST(Loader, EpochsDiffer) {
  const Loader loader = augmented(synthetic(100));
  EXPECT_NE(collect(loader.open({.epoch = 0}))[0].indices, collect(loader.open({.epoch = 1}))[0].indices);
}

TEST(Loader, TheLastBatchIsPaddedOrDropped) {
  BatchOptions options{.batch_size = 8, .shuffle = false, .drop_last = false};
  const ImageExampleOptions labeled{.padding_label = -100};
  const std::vector<Batch> padded = collect(Loader(synthetic(19), options, labeled).open({.epoch = 0}));
  ASSERT_EQ(padded.size(), 3u);
  const Batch& last = padded.back();
  EXPECT_EQ(last.samples, 3);
  EXPECT_EQ(last.indices, (std::vector<int64_t>{16, 17, 18}));
  EXPECT_EQ(images(last).shape()[0], 8);
  for (uint8_t value : images(last).data<uint8_t>().subspan(3 * 90)) EXPECT_EQ(value, 0);
  for (int32_t label : labels(last).data<int32_t>().subspan(3)) EXPECT_EQ(label, -100);

  options.drop_last = true;
  EXPECT_EQ(collect(Loader(synthetic(19), options, labeled).open({.epoch = 0})).size(), 2u);
  options.drop_last = false;
  EXPECT_EQ(collect(Loader(synthetic(16), options, labeled).open({.epoch = 0})).back().samples, 8);
}

TEST(Loader, AWorkersErrorArrivesInItsTurn) {
  for (int64_t workers : {0, 1, 4}) {
    const Loader loader(std::make_shared<UnevenDataset>(200, true),
                        {.batch_size = 10, .shuffle = false, .workers = workers});
    const auto stream = loader.open({.epoch = 0});
    for (int64_t i = 0; i < kFaultyExample / 10; ++i) ASSERT_EQ(stream->next()->after.batch, i + 1);
    EXPECT_ERROR(stream->next(), ErrorCode::invalid_file, "image 57 is broken");
    EXPECT_ERROR(stream->next(), ErrorCode::invalid_file, "image 57 is broken");
  }
}

TEST(Loader, PrefetchIsBounded) {
  const auto dataset = std::make_shared<UnevenDataset>(1000);
  const Loader loader(dataset, {.batch_size = 10, .workers = 2, .prefetch = 3});
  const auto stream = loader.open({.epoch = 0});
  std::this_thread::sleep_for(std::chrono::milliseconds(50));
  EXPECT_LE(dataset->reads(), 30);
  stream->next();
  std::this_thread::sleep_for(std::chrono::milliseconds(50));
  EXPECT_LE(dataset->reads(), 40);
}

// For the thread sanitizer above all.
TEST(Loader, SurvivesEarlyEndsAndManyThreads) {
  for (int round = 0; round < 40; ++round) {
    const std::unique_ptr<Stream> survivor = [&] {
      const Loader loader(
          std::make_shared<UnevenDataset>(300, round % 4 == 3),
          {.batch_size = 7, .drop_last = false, .workers = 1 + round % 6, .prefetch = 1 + round % 5});
      std::unique_ptr<Stream> abandoned = loader.open({.epoch = 0});
      std::unique_ptr<Stream> other = loader.open({.epoch = 1});
      abandoned = loader.open({.epoch = 2});  // ends the first while it works
      for (int i = 0; i < round % 5; ++i) {
        try {
          abandoned->next();
        } catch (const Error&) {
        }
      }
      return other;
    }();
    if (round % 4 == 3) {
      EXPECT_ERROR(collect(survivor), ErrorCode::invalid_file, "broken");
    } else {
      EXPECT_EQ(collect(survivor).size(), 43u);
    }
  }
}

TEST(Loader, RanksShareEachBatchWithoutOverlap) {
  const Loader whole(synthetic(100), {.batch_size = 24, .drop_last = false, .seed = 4});
  const Loader part(synthetic(100), {.batch_size = 8, .drop_last = false, .seed = 4});
  const std::vector<Batch> expected = collect(whole.open({.epoch = 3}));
  ASSERT_EQ(part.batches(3, 3), whole.batches(3));
  std::vector<std::vector<int64_t>> joined(expected.size());
  for (int64_t rank = 0; rank < 3; ++rank) {
    const std::vector<Batch> batches = collect(part.open({.epoch = 3}, {.rank = rank, .ranks = 3}));
    ASSERT_EQ(batches.size(), expected.size());
    for (size_t i = 0; i < batches.size(); ++i) {
      joined[i].insert(joined[i].end(), batches[i].indices.begin(), batches[i].indices.end());
    }
  }
  for (size_t i = 0; i < expected.size(); ++i) EXPECT_EQ(joined[i], expected[i].indices);
  EXPECT_ERROR(part.open({}, {.rank = 3, .ranks = 3}), ErrorCode::invalid_argument, "rank 3 of 3");
}

TEST(Loader, FieldsSayWhatBatchesHold) {
  const Loader loader(synthetic(40), {.batch_size = 10});
  const Batch batch = collect(loader.open({}))[0];
  ASSERT_EQ(loader.sizes(), (std::vector<SymbolBindings>{{{"batch", 10}}}));
  ASSERT_EQ(loader.fields().size(), batch.fields.size());
  for (const Field& field : loader.fields()) {
    const Tensor& tensor = batch.fields.at(field.name);
    EXPECT_EQ(tensor.data_type(), field.type.data_type);
    EXPECT_EQ(to_symbolic(tensor.shape()), substitute(field.type.shape, batch.sizes));
  }
}

TEST(Loader, RefusalsNameTheOption) {
  const auto code = ErrorCode::invalid_argument;
  EXPECT_ERROR(Loader(nullptr, {}), code, "data set");
  EXPECT_ERROR(Loader(synthetic(10), {.batch_size = 0}), code, "batch_size is 0");
  EXPECT_ERROR(Loader(synthetic(10), {.batch_size = 11}), code, "10 examples", "batch of 11", "drop_last");
  EXPECT_ERROR(Loader(synthetic(10), {.batch_size = 5, .workers = -1}), code, "workers is -1");
  EXPECT_ERROR(Loader(synthetic(10), {.batch_size = 5, .prefetch = 0}), code, "prefetch is 0");
  EXPECT_ERROR(Loader(synthetic(10), {.batch_size = 5}, {.augmentation = {.crop_padding = 9}}), code,
               "crop_padding");
}

}  // namespace
}  // namespace tessera::data
