// Batches in which examples of each class are equally often.
#include <map>
#include <set>

#include <gtest/gtest.h>

#include "tessera/data/examples.h"
#include "tessera/data/loader.h"
#include "tessera/data/rows.h"

#include "support/expect_error.h"

namespace tessera::data {
namespace {

// Of 100 examples 10 are of class 2 and 90 of class 5, in two buckets.
class Unequal : public Examples {
 public:
  int64_t size() const override { return 100; }
  std::vector<Field> fields() const override {
    return {{"numbers", {DataType::int32, {Dimension::symbol("batch"), Dimension::symbol("length")}}}};
  }
  std::vector<SymbolBindings> buckets() const override { return {{{"length", 1}}, {{"length", 2}}}; }
  int64_t bucket_of(int64_t index) const override { return index % 5 == 1 ? 1 : 0; }
  int32_t class_of(int64_t index) const override { return index % 10 == 0 ? 2 : 5; }
  void read(int64_t index, const RandomView& /*view*/, const ExampleRow& row) const override {
    for (int32_t& number : elements_of<int32_t>(row, 0)) number = static_cast<int32_t>(index);
  }
};

constexpr BatchOptions kOptions{
    .batch_size = 5, .balanced = true, .drop_last = false, .seed = 3, .workers = 2};

std::vector<Batch> batches_of(const Source& source, const Cursor& from, const Partition& partition = {}) {
  std::vector<Batch> batches;
  const auto stream = source.open(from, partition);
  while (std::optional<Batch> batch = stream->next()) batches.push_back(std::move(*batch));
  return batches;
}

// How often each example is in them.
std::map<int64_t, int64_t> times_of(const std::vector<Batch>& batches) {
  std::map<int64_t, int64_t> times;
  for (const Batch& batch : batches)
    for (const int64_t index : batch.indices) ++times[index];
  return times;
}

TEST(BalancedBatches, HoldEachClassEquallyOften) {
  const auto examples = std::make_shared<Unequal>();
  const ExampleBatches source(examples, kOptions);
  std::set<int64_t> of_the_frequent;
  std::vector<std::vector<int64_t>> firsts;
  for (int64_t epoch = 0; epoch < 6; ++epoch) {
    const std::vector<Batch> batches = batches_of(source, {.epoch = epoch});
    EXPECT_EQ(std::ssize(batches), source.batches(epoch));
    firsts.push_back(batches.front().indices);
    int64_t rare = 0;
    int64_t frequent = 0;
    for (const auto& [index, count] : times_of(batches)) {
      (index % 10 == 0 ? rare : frequent) += count;
      EXPECT_EQ(count, index % 10 == 0 ? 5 : 1) << index;
      if (index % 10 != 0) of_the_frequent.insert(index);
    }
    EXPECT_EQ(rare, 50);
    EXPECT_EQ(frequent, 50);
    for (const Batch& batch : batches) {
      for (const int64_t index : batch.indices)
        EXPECT_EQ(batch.sizes.at("length"), examples->bucket_of(index) + 1);
    }
  }
  EXPECT_GT(of_the_frequent.size(), 80U);  // others in each epoch
  EXPECT_NE(firsts[0], firsts[1]);
}

TEST(BalancedBatches, GoOnWhereACursorPoints) {
  const ExampleBatches source(std::make_shared<Unequal>(), kOptions);
  const std::vector<Batch> all = batches_of(source, {.epoch = 2});
  const std::vector<Batch> rest =
      batches_of(ExampleBatches(std::make_shared<Unequal>(), kOptions), all[6].after);
  ASSERT_EQ(rest.size(), all.size() - 7);
  for (size_t i = 0; i < rest.size(); ++i) {
    EXPECT_EQ(rest[i].indices, all[i + 7].indices);
    EXPECT_TRUE(rest[i].fields.at("numbers").identical(all[i + 7].fields.at("numbers")));
  }
}

// What the ranks take together is what one takes of batches as many times larger.
TEST(BalancedBatches, AreSharedByRanks) {
  const ExampleBatches source(std::make_shared<Unequal>(), kOptions);
  BatchOptions larger = kOptions;
  larger.batch_size = 10;
  const std::vector<Batch> whole = batches_of(ExampleBatches(std::make_shared<Unequal>(), larger), {});
  const std::vector<Batch> first = batches_of(source, {}, {.rank = 0, .ranks = 2});
  const std::vector<Batch> second = batches_of(source, {}, {.rank = 1, .ranks = 2});
  ASSERT_EQ(first.size(), whole.size());
  ASSERT_EQ(second.size(), whole.size());
  for (size_t i = 0; i < whole.size(); ++i) {
    std::vector<int64_t> together = first[i].indices;
    together.insert(together.end(), second[i].indices.begin(), second[i].indices.end());
    EXPECT_EQ(together, whole[i].indices);
  }
}

TEST(BalancedBatches, TakeTheClassesOfImagesAndRows) {
  Tensor images(DataType::uint8, {8, 1, 1});
  Tensor labels(DataType::int32, {8});
  for (int64_t i = 0; i < 8; ++i) images.set(i, static_cast<double>(i));
  labels.set(6, 1);
  labels.set(7, 1);
  const Loader loader(std::make_shared<ClassificationDataset>(images, labels),
                      {.batch_size = 4, .balanced = true});
  const auto seen = times_of(batches_of(loader, {}));
  EXPECT_EQ(seen.at(6), 2);
  EXPECT_EQ(seen.at(7), 2);
  EXPECT_EQ(seen.size(), 6U);
  Tensor happened(DataType::fp32, {8});
  happened.set(3, 1);
  const Rows rows({{"labels", happened}, {"x", images}}, {.batch_size = 4, .balanced = true});
  EXPECT_EQ(times_of(batches_of(rows, {})).at(3), 4);
  const SyntheticDataset synthetic({.size = 40, .image_shape = {1, 1, 1}, .classes = 3});
  for (int64_t i = 0; i < 40; ++i) {
    uint8_t pixel = 0;
    int32_t label = -1;
    synthetic.read(i, std::span(&pixel, 1), label);
    EXPECT_EQ(synthetic.label(i), label);
  }
}

TEST(BalancedBatches, NeedClassesAndARandomOrder) {
  const auto code = ErrorCode::invalid_argument;
  Tensor labels(DataType::fp32, {4});
  labels.set(2, 0.5);
  EXPECT_ERROR(Rows({{"labels", labels}}, {.batch_size = 2, .balanced = true}), code,
               "number 2 of 4 has none");
  EXPECT_ERROR(Rows({{"x", labels}}, {.batch_size = 2, .balanced = true}), code, "need a class of each");
  EXPECT_ERROR(Rows({{"labels", labels}}, {.batch_size = 2, .shuffle = false, .balanced = true}), code,
               "random order");
}

}  // namespace
}  // namespace tessera::data
