#include "tessera/data/rows.h"

#include <numeric>
#include <set>

#include <gtest/gtest.h>

#include "support/expect_error.h"

namespace tessera::testing {
namespace {

Feeds numbered(int64_t count) {
  Tensor pairs(DataType::fp32, {count, 2});
  Tensor numbers(DataType::int64, {count});
  for (int64_t row = 0; row < count; ++row) {
    pairs.set(2 * row, static_cast<double>(row));
    pairs.set(2 * row + 1, static_cast<double>(-row));
    numbers.set(row, static_cast<double>(row));
  }
  return {{"pairs", pairs}, {"numbers", numbers}};
}

// The rows of all batches, of which those that only fill hold zeros.
std::vector<int64_t> rows_of(data::Stream& stream) {
  std::vector<int64_t> rows;
  while (const std::optional<data::Batch> batch = stream.next()) {
    const Tensor& numbers = batch->fields.at("numbers");
    for (int64_t row = 0; row < numbers.size(); ++row) {
      EXPECT_EQ(batch->fields.at("pairs").at(2 * row + 1), -numbers.at(row));
      if (row < batch->samples) {
        EXPECT_EQ(batch->indices[static_cast<size_t>(row)], static_cast<int64_t>(numbers.at(row)));
        rows.push_back(static_cast<int64_t>(numbers.at(row)));
      } else {
        EXPECT_EQ(numbers.at(row), 0);
      }
    }
  }
  return rows;
}

TEST(Rows, ComeInBatchesInTheirOrder) {
  const data::Rows rows(numbered(10), {.batch_size = 4, .shuffle = false, .drop_last = false});
  EXPECT_EQ(rows.batches(0), 3);
  EXPECT_EQ(rows.fields().size(), 2U);
  EXPECT_EQ(to_string(rows.fields()[1].type), "fp32[batch, 2]");
  std::vector<int64_t> expected(10);
  std::iota(expected.begin(), expected.end(), 0);
  EXPECT_EQ(rows_of(*rows.open({})), expected);
  const data::Rows whole(numbered(10), {.batch_size = 4, .shuffle = false});
  EXPECT_EQ(rows_of(*whole.open({})).size(), 8U);
}

// Memory that others used before holds their bytes: rows that only fill are zeros all the same.
TEST(Rows, AreWrittenIntoMemoryForBatches) {
  const auto memory = std::make_shared<BatchMemory>(Device::reference());
  const data::Rows rows(numbered(10), {.batch_size = 4, .shuffle = false, .drop_last = false});
  for (int pass = 0; pass < 2; ++pass) EXPECT_EQ(rows_of(*rows.open_into(memory, {})).size(), 10U);
}

TEST(Rows, AreTheSameWhateverTheNumberOfWorkers) {
  data::BatchOptions options{.batch_size = 3, .drop_last = false, .seed = 5, .workers = 0};
  const std::vector<int64_t> expected = rows_of(*data::Rows(numbered(50), options).open({.epoch = 4}));
  for (const int64_t workers : {1, 3}) {
    for (const int64_t prefetch : {1, 7}) {
      options.workers = workers;
      options.prefetch = prefetch;
      EXPECT_EQ(rows_of(*data::Rows(numbered(50), options).open({.epoch = 4})), expected);
    }
  }
  EXPECT_ERROR(data::Rows(numbered(50), {.workers = 300}), ErrorCode::invalid_argument, "workers is 300");
}

TEST(Rows, AreShuffledAnewInEachEpochAndGoOnAnywhere) {
  const data::Rows rows(numbered(100), {.batch_size = 10, .seed = 3});
  const std::vector<int64_t> first = rows_of(*rows.open({.epoch = 0}));
  EXPECT_EQ(std::set<int64_t>(first.begin(), first.end()).size(), 100U);
  EXPECT_NE(rows_of(*rows.open({.epoch = 1})), first);
  const std::vector<int64_t> rest = rows_of(*rows.open({.epoch = 0, .batch = 7}));
  EXPECT_EQ(rest, std::vector<int64_t>(first.begin() + 70, first.end()));
  EXPECT_EQ(rows.open({.epoch = 2, .batch = 4})->next()->after, (data::Cursor{.epoch = 2, .batch = 5}));
}

TEST(Rows, ArePartitionedAmongRanks) {
  const data::Rows rows(numbered(16), {.batch_size = 2, .seed = 1});
  const data::Rows wide(numbered(16), {.batch_size = 4, .seed = 1});
  const auto left = rows.open({}, {.rank = 0, .ranks = 2});
  const auto right = rows.open({}, {.rank = 1, .ranks = 2});
  const auto both = wide.open({});
  for (int batch = 0; batch < 4; ++batch) {
    const std::optional<data::Batch> parts[] = {left->next(), right->next()};
    const std::optional<data::Batch> whole = both->next();
    std::vector<int64_t> joined = parts[0]->indices;
    for (const int64_t index : parts[1]->indices) joined.push_back(index);
    EXPECT_EQ(joined, whole->indices);
  }
  EXPECT_FALSE(left->next().has_value());
}

TEST(Rows, ComeInOtherBatchesInTheSameOrder) {
  const data::Rows rows(numbered(16), {.batch_size = 1, .seed = 1});
  const std::shared_ptr<const data::Source> others = rows.in_batches_of(5);
  EXPECT_EQ(others->batches(0), 3);
  EXPECT_EQ(others->sizes(), (std::vector<SymbolBindings>{{{"batch", 5}}}));
  std::vector<int64_t> expected = rows_of(*rows.open({.epoch = 2}));
  expected.resize(15);
  EXPECT_EQ(rows_of(*others->open({.epoch = 2})), expected);
}

TEST(Rows, AreHeldOutEvenly) {
  const data::HeldOut held = data::hold_out(numbered(20), 0.25);
  EXPECT_EQ(held.test.at("numbers").to_doubles(), (std::vector<double>{3, 7, 11, 15, 19}));
  EXPECT_EQ(held.test.at("pairs").at(1), -3);
  EXPECT_EQ(held.training.at("numbers").size(), 15);
  EXPECT_ERROR(data::hold_out(numbered(3), 0.1), ErrorCode::invalid_argument, "0.1 of 3 rows");
}

TEST(Rows, RefuseWhatCannotBe) {
  EXPECT_ERROR(data::Rows(numbered(3), {.batch_size = 4}), ErrorCode::invalid_argument,
               "3 examples do not fill");
  EXPECT_ERROR(data::Rows(numbered(3), {.batch_size = 0}), ErrorCode::invalid_argument, "batch_size is 0");
  EXPECT_ERROR(data::Rows({}, {}), ErrorCode::invalid_argument, "no tensor");
  Feeds uneven = numbered(3);
  uneven["more"] = Tensor(DataType::fp32, {4});
  EXPECT_ERROR(data::Rows(uneven, {.batch_size = 1}), ErrorCode::invalid_argument, "'more' has 4",
               "'numbers' has 3");
  uneven["more"] = Tensor::scalar(DataType::fp32, 1);
  EXPECT_ERROR(data::Rows(uneven, {.batch_size = 1}), ErrorCode::invalid_argument, "'more' has no rows");
  const data::Rows rows(numbered(8), {.batch_size = 4});
  EXPECT_ERROR(rows.open({.batch = 3}), ErrorCode::invalid_argument, "no batch 3", "2 batches");
  EXPECT_ERROR(rows.open({}, {.rank = 2, .ranks = 2}), ErrorCode::invalid_argument, "rank 2 of 2");
}

}  // namespace
}  // namespace tessera::testing
