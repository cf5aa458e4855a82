#include "tessera/data/token_lanes.h"

#include <algorithm>
#include <fstream>
#include <numeric>
#include <set>

#include <gtest/gtest.h>

#include "tessera/base/random.h"

#include "support/expect_error.h"
#include "support/temporary_folder.h"

namespace tessera::testing {
namespace {

using data::TokenLaneOptions;
using data::TokenLanes;
using data::TokenRowPart;

// 0, 1, 2, ...
class CountingText : public data::TokenText {
 public:
  explicit CountingText(int64_t size) : size_(size) {}
  int64_t size() const override { return size_; }
  void read(int64_t begin, std::span<int32_t> tokens) const override {
    EXPECT_LE(begin + std::ssize(tokens), size_);
    std::iota(tokens.begin(), tokens.end(), static_cast<int32_t>(begin));
  }

 private:
  int64_t size_;
};

std::shared_ptr<const data::TokenText> counting(int64_t size) {
  return std::make_shared<const CountingText>(size);
}

using Ids = std::vector<int32_t>;

Ids ids_of(const Tensor& tensor) {
  return {tensor.data<int32_t>().begin(), tensor.data<int32_t>().end()};
}

std::vector<data::Batch> all_of(const TokenLanes& lanes, const data::Cursor& from = {},
                                const data::Partition& partition = {}) {
  std::vector<data::Batch> batches;
  const auto stream = lanes.open(from, partition);
  while (std::optional<data::Batch> batch = stream->next()) batches.push_back(std::move(*batch));
  return batches;
}

TEST(TokenLanes, GoOnWhereTheBatchBeforeEnded) {
  const TokenLanes lanes(counting(22), {.length = 3, .batch_size = 2});
  const std::vector<data::Batch> batches = all_of(lanes);
  ASSERT_EQ(batches.size(), 3U);
  EXPECT_EQ(lanes.batches(0), 3);
  EXPECT_EQ(ids_of(batches[0].fields.at("tokens")), (Ids{0, 1, 2, 10, 11, 12}));
  EXPECT_EQ(ids_of(batches[0].fields.at("labels")), (Ids{1, 2, 3, 11, 12, 13}));
  EXPECT_EQ(ids_of(batches[1].fields.at("tokens")), (Ids{3, 4, 5, 13, 14, 15}));
  EXPECT_EQ(ids_of(batches[2].fields.at("labels")), (Ids{7, 8, 9, 17, 18, 19}));
  for (size_t i = 0; i < batches.size(); ++i) {
    const int32_t begins = i == 0 ? 1 : 0;
    EXPECT_EQ(ids_of(batches[i].fields.at("begins")), (Ids{begins, begins}));
    EXPECT_EQ(batches[i].samples, 2);
    EXPECT_EQ(batches[i].after, (data::Cursor{.batch = static_cast<int64_t>(i) + 1}));
  }
}

// Every token but the first of a part is foretold once where nothing is left out, and where it is filled up
// nothing counts.
TEST(TokenLanes, ForetellEveryTokenOnceWhereNothingIsDropped) {
  for (const int64_t size : {2, 7, 23, 24, 25, 60}) {
    const TokenLanes lanes(counting(size), {.length = 4, .batch_size = 3, .drop_last = false});
    std::multiset<int32_t> foretold;
    for (const data::Batch& batch : all_of(lanes)) {
      const Ids tokens = ids_of(batch.fields.at("tokens")), labels = ids_of(batch.fields.at("labels"));
      for (size_t i = 0; i < labels.size(); ++i) {
        if (labels[i] < 0) {
          EXPECT_EQ(labels[i], -100);
          EXPECT_EQ(tokens[i], 0);
          continue;
        }
        EXPECT_EQ(labels[i], tokens[i] + 1);
        foretold.insert(labels[i]);
      }
    }
    std::multiset<int32_t> expected;
    for (int32_t token = 1; token < size; ++token) expected.insert(token);
    EXPECT_EQ(foretold, expected) << size;
  }
}

TEST(TokenLanes, TestOnTheEndOfTheText) {
  const auto part = [](TokenRowPart which) {
    return TokenLanes(counting(40), {.length = 5, .part = which, .test_share = 0.3, .batch_size = 1});
  };
  const TokenLanes training = part(TokenRowPart::training), test = part(TokenRowPart::test);
  EXPECT_EQ(training.size(), 28);
  EXPECT_EQ(test.size(), 12);
  EXPECT_EQ(ids_of(all_of(training).back().fields.at("labels")).back(), 25);
  EXPECT_EQ(ids_of(all_of(test).front().fields.at("tokens")).front(), 28);
  EXPECT_EQ(part(TokenRowPart::all).size(), 40);
  EXPECT_EQ(training.in_batches_of(2), nullptr);  // of no samples: more lanes are shorter ones
}

TEST(TokenLanes, ShareOutLanesAmongRanks) {
  const TokenLaneOptions whole{.length = 3, .batch_size = 4, .workers = 0};
  TokenLaneOptions part = whole;
  part.batch_size = 2;
  const std::vector<data::Batch> alone = all_of(TokenLanes(counting(100), whole));
  const TokenLanes lanes(counting(100), part);
  EXPECT_EQ(lanes.batches(0, 2), std::ssize(alone));
  for (int64_t rank = 0; rank < 2; ++rank) {
    const std::vector<data::Batch> own = all_of(lanes, {}, {.rank = rank, .ranks = 2});
    ASSERT_EQ(own.size(), alone.size());
    for (size_t i = 0; i < own.size(); ++i) {
      for (const char* field : {"tokens", "labels"}) {
        const Ids all = ids_of(alone[i].fields.at(field));
        EXPECT_EQ(ids_of(own[i].fields.at(field)), Ids(all.begin() + rank * 6, all.begin() + rank * 6 + 6));
      }
    }
  }
}

// Drawn tokens, the rarer the larger.
class DrawnText : public data::TokenText {
 public:
  explicit DrawnText(int64_t size) : size_(size) {}
  int64_t size() const override { return size_; }
  void read(int64_t begin, std::span<int32_t> tokens) const override {
    EXPECT_LE(begin + std::ssize(tokens), size_);
    for (int32_t& token : tokens) {
      const auto place = static_cast<uint64_t>(begin++);
      token = static_cast<int32_t>(std::min(random_.below(2 * place, 30), random_.below(2 * place + 1, 30)));
    }
  }

 private:
  int64_t size_;
  Random random_{7};
};

TEST(TokenLanes, CountTheMostLabelsOfAnyBatchOfAnyRank) {
  const std::vector<int64_t> cutoffs{9, 16, 40};
  for (const bool drop_last : {true, false}) {
    for (const int64_t ranks : {1, 2, 3}) {
      SCOPED_TRACE(ranks);
      const TokenLanes lanes(std::make_shared<const DrawnText>(700),
                             {.length = 6, .batch_size = 4, .drop_last = drop_last});
      std::vector<int64_t> expected(cutoffs.size(), 0);
      std::set<int64_t> counts;  // of the first part
      for (int64_t rank = 0; rank < ranks; ++rank) {
        for (const data::Batch& batch : all_of(lanes, {}, {.rank = rank, .ranks = ranks})) {
          std::vector<int64_t> own(cutoffs.size(), 0);
          for (const int32_t label : ids_of(batch.fields.at("labels"))) {
            if (label >= 9 && label < 16) ++own[0];
            if (label >= 16 && label < 40) ++own[1];
          }
          counts.insert(own[0]);
          for (size_t i = 0; i < own.size(); ++i) expected[i] = std::max(expected[i], own[i]);
        }
      }
      EXPECT_EQ(lanes.most_labels(cutoffs, ranks), expected);
      EXPECT_GT(counts.size(), 3U);
      EXPECT_LT(*counts.rbegin(), 24);
      EXPECT_EQ(expected.back(), 0);
    }
  }
}

TEST(TokenLanes, ReadTheSameFromAnywhereByAnyWorkers) {
  const TokenLanes one(counting(200), {.length = 4, .batch_size = 3, .workers = 0});
  const TokenLanes other(counting(200), {.length = 4, .batch_size = 3, .workers = 3});
  const std::vector<data::Batch> straight = all_of(one);
  const std::vector<data::Batch> resumed = all_of(other, {.epoch = 2, .batch = 5});
  ASSERT_EQ(resumed.size(), straight.size() - 5);
  for (size_t i = 0; i < resumed.size(); ++i) {
    for (const auto& [name, tensor] : resumed[i].fields)
      EXPECT_TRUE(tensor.identical(straight[i + 5].fields.at(name))) << name << i;
    EXPECT_EQ(resumed[i].after, (data::Cursor{.epoch = 2, .batch = static_cast<int64_t>(i) + 6}));
  }
  EXPECT_TRUE(all_of(one, {.batch = std::ssize(straight)}).empty());
}

TEST(TokenLanes, RefuseWhatFillsNoBatch) {
  const auto made = [](const TokenLaneOptions& options) { return TokenLanes(counting(12), options); };
  EXPECT_ERROR(made({.length = 4, .batch_size = 3}), ErrorCode::invalid_argument, "12 tokens", "3 lanes");
  EXPECT_ERROR(made({.length = 0, .batch_size = 3}), ErrorCode::invalid_argument, "segments of 0 tokens");
  EXPECT_ERROR(made({.length = 1, .batch_size = 0}), ErrorCode::invalid_argument, "batch_size is 0");
  EXPECT_ERROR(made({.length = 1, .part = TokenRowPart::test, .batch_size = 1}), ErrorCode::invalid_argument,
               "test_share is 0");
  EXPECT_ERROR(TokenLanes(counting(1), {.length = 1, .batch_size = 1, .drop_last = false}),
               ErrorCode::invalid_argument, "1 tokens");
}

TEST(TokenText, IsAllDocumentsOrAllBytes) {
  const TemporaryFolder folder;
  data::write_token_shard(folder / "a", {.tokens = {5, 6, 7}, .ends = {2, 3}}, {.vocabulary = 10});
  data::write_token_set(folder.path(), {.vocabulary = 10, .separator = 1}, {{"a", 2, 3}});
  const auto joined = data::joined_text(std::make_shared<const data::TokenSet>(folder.path()));
  Ids tokens(4);
  ASSERT_EQ(joined->size(), 5);
  joined->read(1, tokens);
  EXPECT_EQ(tokens, (Ids{6, 1, 7, 1}));
  std::ofstream(folder / "text") << "a\xc3\xa9";
  const auto bytes = data::byte_text(folder / "text");
  ASSERT_EQ(bytes->size(), 3);
  bytes->read(0, std::span(tokens).first(3));
  EXPECT_EQ(tokens, (Ids{'a', 0xc3, 0xa9, 1}));
}

}  // namespace
}  // namespace tessera::testing
