#include "tessera/data/examples.h"

#include <map>
#include <set>

#include <gtest/gtest.h>

#include "support/expect_error.h"

namespace tessera::data {
namespace {

// Example i is `i` written so often as its bucket is long: 2, 3 or 5 times.
class Repeated : public Examples {
 public:
  explicit Repeated(int64_t size) : size_(size) {}
  int64_t size() const override { return size_; }
  std::vector<Field> fields() const override {
    return {{"numbers", {DataType::int32, {Dimension::symbol("batch"), Dimension::symbol("length")}}}};
  }
  std::vector<SymbolBindings> buckets() const override {
    return {{{"length", 2}}, {{"length", 3}}, {{"length", 5}}};
  }
  int64_t bucket_of(int64_t index) const override { return index % 7 == 0 ? 2 : index % 2; }
  void read(int64_t index, const RandomView& view, const ExampleRow& row) const override {
    EXPECT_EQ(view.seed, 11U);
    for (int32_t& number : elements_of<int32_t>(row, 0)) number = static_cast<int32_t>(index);
  }
  void fill(const ExampleRow& row) const override {
    for (int32_t& number : elements_of<int32_t>(row, 0)) number = -1;
  }

 private:
  int64_t size_;
};

BatchOptions options_of(bool drop_last, int64_t workers = 2) {
  return {.batch_size = 4, .drop_last = drop_last, .seed = 11, .workers = workers};
}

std::vector<Batch> batches_of(const Source& source, const Cursor& from, const Partition& partition = {}) {
  std::vector<Batch> batches;
  const auto stream = source.open(from, partition);
  while (std::optional<Batch> batch = stream->next()) batches.push_back(std::move(*batch));
  return batches;
}

// Each batch is of one bucket, its rows are its examples, and what fills it says so. How often each comes.
std::map<int64_t, int64_t> check(const std::vector<Batch>& batches, const Examples& examples) {
  std::map<int64_t, int64_t> seen;
  for (const Batch& batch : batches) {
    const Tensor& numbers = batch.fields.at("numbers");
    const int64_t length = batch.sizes.at("length"), rows = batch.sizes.at("batch");
    EXPECT_EQ(numbers.shape(), (Shape{rows, length}));
    EXPECT_EQ(batch.samples, std::ssize(batch.indices));
    for (int64_t row = 0; row < rows; ++row) {
      const int64_t expected = row < batch.samples ? batch.indices[static_cast<size_t>(row)] : -1;
      for (int64_t i = 0; i < length; ++i) EXPECT_EQ(numbers.at(row * length + i), expected);
      if (expected < 0) continue;
      ++seen[expected];
      EXPECT_EQ(examples.buckets()[static_cast<size_t>(examples.bucket_of(expected))].at("length"), length);
    }
  }
  return seen;
}

TEST(ExampleBatches, OfBucketsHoldEachExampleOnce) {
  const auto examples = std::make_shared<Repeated>(101);
  const ExampleBatches source(examples, options_of(false));
  const std::vector<Batch> batches = batches_of(source, {.epoch = 3});
  EXPECT_EQ(std::ssize(batches), source.batches(3));
  EXPECT_EQ(std::ssize(source.sizes()), 3);
  const auto seen = check(batches, *examples);
  EXPECT_EQ(seen.size(), 101U);
  for (const auto& [index, count] : seen) EXPECT_EQ(count, 1);
  int64_t changes = 0;  // buckets come mixed
  for (size_t i = 1; i < batches.size(); ++i) changes += batches[i].sizes != batches[i - 1].sizes ? 1 : 0;
  EXPECT_GT(changes, 2);
  const auto other = batches_of(source, {.epoch = 4});
  EXPECT_NE(other.front().indices, batches.front().indices);
}

TEST(ExampleBatches, OfBucketsLeaveIncompleteOnesOut) {
  const auto examples = std::make_shared<Repeated>(101);
  const ExampleBatches source(examples, options_of(true));
  const std::vector<Batch> batches = batches_of(source, {.epoch = 0});
  // 15 examples are of the longest bucket (3 batches), and 43 of each other one (10 batches).
  EXPECT_EQ(batches.size(), 23U);
  for (const Batch& batch : batches) EXPECT_EQ(batch.samples, 4);
  check(batches, *examples);
  EXPECT_EQ(source.in_batches_of(2), nullptr);  // an epoch has three last batches
}

TEST(ExampleBatches, OfBucketsGoOnFromACursorAndDoNotDependOnThreads) {
  const auto examples = std::make_shared<Repeated>(101);
  const ExampleBatches source(examples, options_of(false));
  const std::vector<Batch> whole = batches_of(source, {.epoch = 1});
  const ExampleBatches alone(examples, options_of(false, 0));
  const std::vector<Batch> rest = batches_of(alone, whole[4].after);
  ASSERT_EQ(rest.size() + 5, whole.size());
  for (size_t i = 0; i < rest.size(); ++i) {
    EXPECT_EQ(rest[i].indices, whole[i + 5].indices);
    EXPECT_EQ(rest[i].sizes, whole[i + 5].sizes);
    EXPECT_EQ(rest[i].after, whole[i + 5].after);
  }
}

// Ranks take parts of the same batches: all of one bucket at a step, no example twice.
TEST(ExampleBatches, OfBucketsAreSharedOut) {
  const auto examples = std::make_shared<Repeated>(203);
  const ExampleBatches source(examples, options_of(false));
  const auto first = batches_of(source, {.epoch = 2}, {.rank = 0, .ranks = 2});
  const auto second = batches_of(source, {.epoch = 2}, {.rank = 1, .ranks = 2});
  ASSERT_EQ(first.size(), second.size());
  EXPECT_EQ(std::ssize(first), source.batches(2, 2));
  std::map<int64_t, int64_t> seen = check(first, *examples);
  for (const auto& [index, count] : check(second, *examples)) seen[index] += count;
  EXPECT_EQ(seen.size(), 203U);
  for (const auto& [index, count] : seen) EXPECT_EQ(count, 1);
  for (size_t i = 0; i < first.size(); ++i) EXPECT_EQ(first[i].sizes, second[i].sizes);
}

// 15 examples of the bucket of length 5, and 43 of each other one.
TEST(ExampleBatches, OfShortRowsMayHoldMore) {
  const auto examples = std::make_shared<Repeated>(101);
  BatchOptions options = options_of(false);
  options.batch_sizes = {10, 7, 4};
  const ExampleBatches source(examples, options);
  const std::vector<Batch> batches = batches_of(source, {.epoch = 2});
  EXPECT_EQ(batches.size(), 5U + 7U + 4U);
  EXPECT_EQ(std::ssize(batches), source.batches(2));
  EXPECT_EQ(source.sizes(), (std::vector<SymbolBindings>{{{"batch", 10}, {"length", 2}},
                                                         {{"batch", 7}, {"length", 3}},
                                                         {{"batch", 4}, {"length", 5}}}));
  const auto seen = check(batches, *examples);
  EXPECT_EQ(seen.size(), 101U);
  for (const auto& [index, count] : seen) EXPECT_EQ(count, 1);
  options.drop_last = true;
  EXPECT_EQ(ExampleBatches(examples, options).batches(0), 4 + 6 + 3);
}

TEST(ExampleBatches, RefuseWhatTheyCannotBeMadeOf) {
  const auto code = ErrorCode::invalid_argument;
  EXPECT_ERROR(ExampleBatches(nullptr, {}), code, "no examples");
  EXPECT_ERROR(ExampleBatches(std::make_shared<Repeated>(5), options_of(true)), code,
               "5 examples do not fill");
  EXPECT_ERROR(ExampleBatches(std::make_shared<Repeated>(50), {.batch_size = 0}), code, "batch_size is 0");
  EXPECT_ERROR(ExampleBatches(std::make_shared<Repeated>(50), {.batch_sizes = {4, 4}}), code,
               "2 sizes of batches for 3 buckets");
}

}  // namespace
}  // namespace tessera::data
