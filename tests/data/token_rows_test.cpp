#include "tessera/data/token_rows.h"

#include <set>

#include <gtest/gtest.h>

#include "support/expect_error.h"
#include "support/temporary_folder.h"

namespace tessera::testing {
namespace {

using Ids = std::vector<int32_t>;
using data::TokenRowKind;
using data::TokenRowPart;
using data::TokenRows;

// Two shards of documents of 1, 2, 3, ... tokens, which count up through all of them; an empty one among
// them.
std::shared_ptr<const data::TokenSet> counting(const TemporaryFolder& folder, data::TokenSetHeader header) {
  header.vocabulary = 1000;
  int32_t next = 10;
  std::vector<data::TokenSetEntry> entries;
  for (const auto& [name, first, last] : {std::tuple{"a", 1, 4}, {"b", 5, 7}}) {
    data::TokenDocuments documents;
    for (int length = first; length <= last; ++length) {
      for (int i = 0; i < length; ++i) documents.tokens.push_back(next++);
      documents.ends.push_back(std::ssize(documents.tokens));
      if (length == 3) documents.ends.push_back(std::ssize(documents.tokens));
    }
    data::write_token_shard(folder / name, documents, {.vocabulary = header.vocabulary});
    entries.push_back({name, std::ssize(documents.ends), std::ssize(documents.tokens)});
  }
  data::write_token_set(folder.path(), header, entries);
  return std::make_shared<const data::TokenSet>(folder.path());
}

Ids ids_of(const Tensor& tensor) {
  return {tensor.data<int32_t>().begin(), tensor.data<int32_t>().end()};
}

// All that a stream gives of one field, row after row, without those that only fill.
Ids all_of(data::Stream& stream, const std::string& field) {
  Ids ids;
  while (const std::optional<data::Batch> batch = stream.next()) {
    const Tensor& tensor = batch->fields.at(field);
    const int64_t count = tensor.size() / tensor.shape()[0] * batch->samples;
    for (int64_t i = 0; i < tensor.size(); ++i) {
      const auto value = static_cast<int32_t>(tensor.at(i));
      if (i < count) {
        ids.push_back(value);
      } else {
        EXPECT_EQ(value, 0);
      }
    }
  }
  return ids;
}

TEST(TokenRows, JoinDocumentsWithSeparators) {
  const TemporaryFolder folder;
  const auto set = counting(folder, {.separator = 3});
  const Ids expected{10, 3,  11, 12, 3,  13, 14, 15, 3,  3, 16, 17, 18, 19, 3,  20, 21, 22,
                     23, 24, 3,  25, 26, 27, 28, 29, 30, 3, 31, 32, 33, 34, 35, 36, 37, 3};
  for (const int64_t length : {1, 2, 3, 5, 7, 36}) {
    const TokenRows rows(set, {.length = length, .batch_size = 2, .shuffle = false, .drop_last = false});
    const int64_t whole = 36 / length * length;
    EXPECT_EQ(all_of(*rows.open({}), "tokens"), Ids(expected.begin(), expected.begin() + whole)) << length;
    EXPECT_EQ(rows.fields().size(), 1u);
  }
  const TokenRows plain(counting(folder, {}), {.length = 14, .batch_size = 1, .shuffle = false});
  const Ids ids = ids_of(plain.row(1).at("tokens"));
  for (int32_t i = 0; i < 14; ++i) EXPECT_EQ(ids[static_cast<size_t>(i)], 24 + i) << "without a separator";
}

TEST(TokenRows, ComeInOtherBatchesInTheSameOrder) {
  const TemporaryFolder folder;
  const TokenRows rows(counting(folder, {.separator = 3}), {.length = 3, .batch_size = 1, .seed = 5});
  const std::shared_ptr<const data::Source> others = rows.in_batches_of(5);
  EXPECT_EQ(others->batches(0), 2);
  Ids expected = all_of(*rows.open({.epoch = 1}), "tokens");
  expected.resize(30);
  EXPECT_EQ(all_of(*others->open({.epoch = 1}), "tokens"), expected);
}

TEST(TokenRows, HoldADocumentEachWithItsLength) {
  const TemporaryFolder folder;
  const auto set = counting(folder, {.begin = 2, .separator = 3, .padding = 1});
  const TokenRows rows(set,
                       {.kind = TokenRowKind::documents, .length = 6, .batch_size = 1, .shuffle = false});
  EXPECT_EQ(rows.size(), 8);
  EXPECT_EQ(to_string(rows.fields()[1].type), "int32[batch]");
  EXPECT_EQ(ids_of(rows.row(0).at("tokens")), (Ids{2, 10, 3, 1, 1, 1}));
  EXPECT_EQ(ids_of(rows.row(3).at("tokens")), (Ids{2, 3, 1, 1, 1, 1}));
  EXPECT_EQ(ids_of(rows.row(7).at("tokens")), (Ids{2, 31, 32, 33, 34, 3})) << "cut";
  EXPECT_EQ(all_of(*rows.open({}), "lengths"), (Ids{3, 4, 5, 2, 6, 6, 6, 6}));
}

TEST(TokenRows, HoldTextsBesideTheirTranslations) {
  const TemporaryFolder folder;
  data::write_token_shard(folder / "a", {.tokens = {5, 6, 7, 8}, .ends = {1, 3, 4, 4}},
                          {.fields = 2, .vocabulary = 9});
  data::write_token_set(folder.path(), {.vocabulary = 9, .fields = 2, .separator = 2}, {{"a", 2, 4}});
  const auto set = std::make_shared<const data::TokenSet>(folder.path());
  const TokenRows rows(set,
                       {.kind = TokenRowKind::documents, .length = 3, .batch_size = 2, .shuffle = false});
  EXPECT_EQ(all_of(*rows.open({}), "source"), (Ids{5, 2, 0, 8, 2, 0}));
  EXPECT_EQ(all_of(*rows.open({}), "target"), (Ids{6, 7, 2, 2, 0, 0}));
  EXPECT_EQ(all_of(*rows.open({}), "target_lengths"), (Ids{3, 1}));
  EXPECT_ERROR(TokenRows(set, {.length = 3, .batch_size = 1}), ErrorCode::invalid_argument, "two texts");
}

TEST(TokenRows, GoOnAnywhereWithTheSameBits) {
  const TemporaryFolder folder;
  const auto set = counting(folder, {.separator = 3});
  const TokenRows rows(set, {.length = 2, .batch_size = 3, .seed = 4, .workers = 2});
  const Ids whole = all_of(*rows.open({.epoch = 5}), "tokens");
  EXPECT_NE(whole, all_of(*rows.open({.epoch = 6}), "tokens"));
  const auto memory = std::make_shared<BatchMemory>(Device::reference());
  for (int64_t batch = 0; batch <= 6; ++batch) {
    const Ids rest = all_of(*rows.open_into(memory, {.epoch = 5, .batch = batch}), "tokens");
    EXPECT_EQ(rest, Ids(whole.begin() + batch * 6, whole.end()));
  }
}

TEST(TokenRows, AreSharedAmongRanksWithoutOverlap) {
  const TemporaryFolder folder;
  const auto set = counting(folder, {.separator = 3});
  const TokenRows rows(set, {.length = 1, .batch_size = 3, .seed = 4});
  std::multiset<int64_t> seen;
  for (int64_t rank = 0; rank < 3; ++rank) {
    const auto stream = rows.open({}, {.rank = rank, .ranks = 3});
    while (const std::optional<data::Batch> batch = stream->next())
      seen.insert(batch->indices.begin(), batch->indices.end());
  }
  EXPECT_EQ(seen.size(), 36u);
  EXPECT_EQ(std::set<int64_t>(seen.begin(), seen.end()).size(), 36u);
}

TEST(TokenRows, OfTrainingAndOfTestAreAllRowsOnce) {
  const TemporaryFolder folder;
  const auto set = counting(folder, {.separator = 3});
  std::multiset<int32_t> seen;
  for (const TokenRowPart part : {TokenRowPart::training, TokenRowPart::test}) {
    const TokenRows rows(set, {.length = 4, .part = part, .test_share = 0.25, .batch_size = 1});
    EXPECT_EQ(rows.size(), part == TokenRowPart::test ? 2 : 7);
    const Ids ids = all_of(*rows.open({}), "tokens");
    seen.insert(ids.begin(), ids.end());
  }
  const Ids all = all_of(*TokenRows(set, {.length = 4, .batch_size = 1}).open({}), "tokens");
  EXPECT_EQ(seen, std::multiset<int32_t>(all.begin(), all.end()));
}

TEST(TokenRows, RefuseWhatCannotBe) {
  const TemporaryFolder folder;
  const auto set = counting(folder, {});
  EXPECT_ERROR(TokenRows(set, {.length = 0}), ErrorCode::invalid_argument, "rows of 0 tokens");
  EXPECT_ERROR(TokenRows(set, {.length = 29, .batch_size = 1}), ErrorCode::invalid_argument,
               "do not fill one batch");
  EXPECT_ERROR(TokenRows(set, {.length = 2, .part = TokenRowPart::test, .batch_size = 1}),
               ErrorCode::invalid_argument, "test_share");
  const TokenRows rows(set, {.length = 2, .batch_size = 1});
  EXPECT_ERROR(rows.open({.batch = 15}), ErrorCode::invalid_argument, "no batch 15");
}

}  // namespace
}  // namespace tessera::testing
