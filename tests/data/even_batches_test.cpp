// Batches of pairs that hold nearly as many tokens as one another: tessera/data/token_rows.h.
#include <algorithm>
#include <numeric>
#include <set>

#include <gtest/gtest.h>

#include "tessera/data/token_rows.h"

#include "support/expect_error.h"
#include "support/temporary_folder.h"
#include "support/token_documents.h"

namespace tessera::testing {
namespace {

using data::TokenRows;

constexpr int64_t kLength = 32;
const data::TokenSetHeader kHeader{.vocabulary = 1000, .begin = 1, .separator = 2, .padding = 3};

// A text each, most of them short.
std::shared_ptr<const data::TokenSet> short_texts(const TemporaryFolder& folder, int count = 203) {
  std::vector<int> lengths;
  for (int text = 0; text < count; ++text) lengths.push_back(2 + text * text % 97 * 27 / 96);
  return token_documents(folder, lengths, kHeader, [](int document, int) { return 10 + document; });
}

data::TokenRowOptions even(int64_t batch) {
  return {.kind = data::TokenRowKind::pairs,
          .length = kLength,
          .even_batches = true,
          .batch_size = batch,
          .seed = 5};
}

int64_t tokens_of(const data::Batch& batch) {
  const auto lengths = batch.fields.at("lengths").data<int32_t>();
  return std::accumulate(lengths.begin(), lengths.end(), int64_t{0});
}

std::vector<data::Batch> epoch_of(const TokenRows& rows, int64_t epoch, const data::Partition& part = {}) {
  std::vector<data::Batch> batches;
  const auto stream = rows.open({.epoch = epoch}, part);
  while (std::optional<data::Batch> batch = stream->next()) batches.push_back(*std::move(batch));
  return batches;
}

TEST(EvenBatches, UseEachTextOnceAndHoldNoMoreThanTheySay) {
  const TemporaryFolder folder;
  const auto set = short_texts(folder);
  for (const int64_t batch : {1, 3, 8, 16, 50, 203}) {
    SCOPED_TRACE(batch);
    const TokenRows rows(set, even(batch));
    std::set<int64_t> left_out;
    std::set<std::vector<int64_t>> orders;
    for (int64_t epoch = 0; epoch < 3; ++epoch) {
      std::set<int64_t> seen;
      std::vector<int64_t> order;
      for (const data::Batch& one : epoch_of(rows, epoch)) {
        EXPECT_EQ(one.samples, batch);
        EXPECT_LE(tokens_of(one), rows.most_tokens());
        for (const int64_t index : one.indices) EXPECT_TRUE(seen.insert(index).second) << index;
        order.insert(order.end(), one.indices.begin(), one.indices.end());
      }
      EXPECT_EQ(std::ssize(seen), 203 / batch * batch);
      orders.insert(order);
      for (int64_t index = 0; index < 203; ++index)
        if (!seen.contains(index)) left_out.insert(index);
    }
    EXPECT_EQ(orders.size(), batch == 203 ? 1U : 3U) << "each epoch has its order";
    if (203 % batch > 2) {
      EXPECT_GT(std::ssize(left_out), 203 % batch) << "other texts are left out";
    }
  }
}

TEST(EvenBatches, HoldALongestTextMoreThanTheMeanAtMost) {
  const TemporaryFolder folder;
  const auto set = short_texts(folder);
  data::TokenRowOptions options = even(8);
  const TokenRows rows(set, options);
  int64_t all = 0;
  for (int64_t row = 0; row < rows.size(); ++row)
    all += static_cast<int64_t>(rows.row(row).at("lengths").at(0));
  const double mean = 8 * static_cast<double>(all) / static_cast<double>(rows.size());
  EXPECT_LT(static_cast<double>(rows.most_tokens()), mean + kLength);
  options.even_batches = false;
  const TokenRows other(set, options);
  EXPECT_EQ(other.most_tokens(), 8 * kLength);
  int64_t fullest = 0;
  for (const data::Batch& batch : epoch_of(other, 0)) fullest = std::max(fullest, tokens_of(batch));
  EXPECT_GT(fullest, rows.most_tokens()) << "the bound says something";
}

TEST(EvenBatches, OfRanksAreThoseOfOneProcess) {
  const TemporaryFolder folder;
  const auto set = short_texts(folder);
  const std::vector<data::Batch> whole = epoch_of(TokenRows(set, even(24)), 1);
  for (const int64_t ranks : {2, 3, 4, 6, 8}) {
    SCOPED_TRACE(ranks);
    const TokenRows part(set, even(24 / ranks));
    std::vector<std::vector<int64_t>> together(whole.size());
    for (int64_t rank = 0; rank < ranks; ++rank) {
      const std::vector<data::Batch> own = epoch_of(part, 1, {.rank = rank, .ranks = ranks});
      ASSERT_EQ(own.size(), whole.size());
      for (size_t i = 0; i < own.size(); ++i) {
        EXPECT_LE(tokens_of(own[i]), part.most_tokens());
        together[i].insert(together[i].end(), own[i].indices.begin(), own[i].indices.end());
      }
    }
    for (size_t i = 0; i < whole.size(); ++i) {
      const bool power_of_two = (ranks & (ranks - 1)) == 0;
      if (power_of_two) {
        EXPECT_EQ(together[i], whole[i].indices);
      } else {
        EXPECT_TRUE(std::ranges::is_permutation(together[i], whole[i].indices));
      }
    }
  }
}

TEST(EvenBatches, AreTheSameWhereverTheyBeginAndWhateverPreparesThem) {
  const TemporaryFolder folder;
  const auto set = short_texts(folder);
  data::TokenRowOptions options = even(8);
  const std::vector<data::Batch> straight = epoch_of(TokenRows(set, options), 2);
  options.workers = 3;
  const TokenRows threaded(set, options);
  const auto stream = threaded.open({.epoch = 2, .batch = 5});
  for (size_t i = 5; i < straight.size(); ++i) {
    const std::optional<data::Batch> batch = stream->next();
    ASSERT_TRUE(batch.has_value());
    EXPECT_EQ(batch->indices, straight[i].indices);
    for (const auto& [name, tensor] : batch->fields)
      EXPECT_TRUE(tensor.identical(straight[i].fields.at(name))) << name;
  }
  EXPECT_FALSE(stream->next().has_value());
}

TEST(EvenBatches, KeepTheirOrderWhereNothingIsShuffled) {
  const TemporaryFolder folder;
  data::TokenRowOptions options = even(8);
  options.shuffle = false;
  const TokenRows rows(short_texts(folder), options);
  const std::vector<data::Batch> first = epoch_of(rows, 0), second = epoch_of(rows, 1);
  for (size_t i = 0; i < first.size(); ++i) EXPECT_EQ(first[i].indices, second[i].indices);
}

TEST(EvenBatches, SayWhatTheyCannotBe) {
  const auto code = ErrorCode::invalid_argument;
  const TemporaryFolder folder;
  const auto set = short_texts(folder);
  data::TokenRowOptions options = even(8);
  options.drop_last = false;
  EXPECT_ERROR(TokenRows(set, options), code, "whole ones", "drop_last");
  options = even(8);
  options.packed = 2;
  EXPECT_ERROR(TokenRows(set, options), code, "pairs in rows of their own");
  options = even(8);
  options.kind = data::TokenRowKind::documents;
  EXPECT_ERROR(TokenRows(set, options), code, "pairs in rows of their own");
  EXPECT_ERROR(TokenRows(set, even(204)), code, "do not fill one batch of 204");
}

}  // namespace
}  // namespace tessera::testing
