#include "tessera/data/parallel_tokens.h"

#include <set>

#include <gtest/gtest.h>

#include "support/expect_error.h"
#include "support/temporary_folder.h"

namespace tessera::testing {
namespace {

using Ids = std::vector<int32_t>;
using data::ParallelTokens;
using data::TokenRowPart;

// Pair i has i tokens and 2 i of translation: 100 i, 100 i + 1, ...
std::shared_ptr<const data::TokenSet> pairs(const TemporaryFolder& folder, data::TokenSetHeader header,
                                            int64_t count = 5) {
  header.vocabulary = 10000;
  header.fields = 2;
  data::TokenDocuments documents;
  for (int64_t pair = 1; pair <= count; ++pair) {
    int32_t token = static_cast<int32_t>(100 * pair);
    for (const int64_t length : {pair, 2 * pair}) {
      for (int64_t i = 0; i < length; ++i) documents.tokens.push_back(token++);
      documents.ends.push_back(std::ssize(documents.tokens));
    }
  }
  data::write_token_shard(folder / "a", documents, {.fields = 2, .vocabulary = header.vocabulary});
  data::write_token_set(folder.path(), header, {{"a", count, std::ssize(documents.tokens)}});
  return std::make_shared<const data::TokenSet>(folder.path());
}

Ids row_of(const data::Batch& batch, const char* field, int64_t row) {
  const Tensor& tensor = batch.fields.at(field);
  const int64_t each = tensor.size() / tensor.shape()[0];
  const auto all = tensor.data<int32_t>().subspan(static_cast<size_t>(row * each), static_cast<size_t>(each));
  return {all.begin(), all.end()};
}

TEST(ParallelTokens, AreRowsOfTheFirstLengthThatHoldsBothTexts) {
  const TemporaryFolder folder;
  const auto set = pairs(folder, {.begin = 2, .separator = 3, .padding = 1});
  const auto examples = std::make_shared<ParallelTokens>(set, data::ParallelOptions{.lengths = {5, 9}});
  ASSERT_EQ(examples->size(), 4);
  EXPECT_EQ(examples->bucket_of(1), 0) << "4 tokens and the separator";
  EXPECT_EQ(examples->bucket_of(2), 1);
  EXPECT_EQ(examples->remarks(),
            (std::vector<std::string>{"1 pairs of texts are longer than 8 tokens and were left out"}));
  const data::ExampleBatches source(examples, {.batch_sizes = {2, 2}, .shuffle = false});
  const auto stream = source.open({});
  const data::Batch first = *stream->next();
  EXPECT_EQ(row_of(first, "source", 0), (Ids{100, 3, 1, 1, 1}));
  EXPECT_EQ(row_of(first, "target", 0), (Ids{2, 101, 102, 1, 1}));
  EXPECT_EQ(row_of(first, "labels", 0), (Ids{101, 102, 3, 1, 1}));
  EXPECT_EQ(row_of(first, "source", 1), (Ids{200, 201, 3, 1, 1}));
  EXPECT_EQ(row_of(first, "target", 1), (Ids{2, 202, 203, 204, 205}));
  EXPECT_EQ(row_of(first, "labels", 1), (Ids{202, 203, 204, 205, 3}));
  EXPECT_EQ(row_of(first, "source_lengths", 1), (Ids{3}));
  EXPECT_EQ(row_of(first, "target_lengths", 0), (Ids{3}));
  const data::Batch second = *stream->next();
  EXPECT_EQ(row_of(second, "target", 1), (Ids{2, 404, 405, 406, 407, 408, 409, 410, 411}));
  EXPECT_EQ(examples->tokens(0, 1), (Ids{101, 102}));
}

TEST(ParallelTokens, BeginWithTheSeparatorWhereThereIsNoOther) {
  const TemporaryFolder folder;
  const ParallelTokens examples(pairs(folder, {.separator = 7}), {.lengths = {16}});
  EXPECT_EQ(examples.begin(), 7);
  EXPECT_EQ(examples.separator(), 7);
}

TEST(ParallelTokens, OfTrainingAndOfTestAreAllOnce) {
  const TemporaryFolder folder;
  const auto set = pairs(folder, {.separator = 3}, 20);
  std::multiset<int32_t> seen;
  for (const auto& [part, count] : {std::pair{TokenRowPart::training, 15}, {TokenRowPart::test, 5}}) {
    const ParallelTokens examples(set, {.lengths = {64}, .part = part, .test_share = 0.25});
    EXPECT_EQ(examples.size(), count);
    for (int64_t i = 0; i < examples.size(); ++i) seen.insert(examples.tokens(i, 0).front());
  }
  EXPECT_EQ(seen.size(), 20U);
  EXPECT_EQ(std::set<int32_t>(seen.begin(), seen.end()).size(), 20U);
}

TEST(ParallelTokens, RefuseWhatTheyCannotBeMadeOf) {
  const auto code = ErrorCode::invalid_argument;
  const TemporaryFolder folder;
  const auto set = pairs(folder, {.separator = 3});
  EXPECT_ERROR(ParallelTokens(set, {.lengths = {}}), code, "lengths of rows");
  EXPECT_ERROR(ParallelTokens(set, {.lengths = {8, 8}}), code, "lengths of rows");
  EXPECT_ERROR(ParallelTokens(set, {.part = TokenRowPart::test, .test_share = 1}), code, "test_share is 1");
  EXPECT_ERROR(ParallelTokens(pairs(folder, {}), {}), code, "no token that ends a text");
  data::write_token_shard(folder / "b", {.tokens = {5}, .ends = {1}}, {.vocabulary = 9});
  data::write_token_set(folder.path(), {.vocabulary = 9, .separator = 2}, {{"b", 1, 1}});
  EXPECT_ERROR(ParallelTokens(std::make_shared<const data::TokenSet>(folder.path()), {}), code,
               "no texts beside their translations");
}

}  // namespace
}  // namespace tessera::testing
