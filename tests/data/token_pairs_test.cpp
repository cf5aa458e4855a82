// Rows of pairs of texts: tessera/data/token_rows.h.
#include <algorithm>
#include <map>
#include <set>

#include <gtest/gtest.h>

#include "tessera/data/token_rows.h"

#include "support/expect_error.h"
#include "support/temporary_folder.h"
#include "support/token_documents.h"

namespace tessera::testing {
namespace {

using Ids = std::vector<int32_t>;
using data::TokenRowKind;
using data::TokenRowPart;
using data::TokenRows;

constexpr int32_t kBegin = 1;
constexpr int32_t kSeparator = 2;
constexpr int32_t kPadding = 3;
constexpr int32_t kDocument = 1000;  // tokens of document d count up from (d + 1) * 1000

const std::vector<int> kLengths{40, 1, 0, 17, 25, 2, 60, 33};
const data::TokenSetHeader kHeader{
    .vocabulary = 10000, .begin = kBegin, .separator = kSeparator, .padding = kPadding};

std::shared_ptr<const data::TokenSet> documents(const TemporaryFolder& folder,
                                                const std::vector<int>& lengths,
                                                const data::TokenSetHeader& header = kHeader) {
  return token_documents(folder, lengths, header,
                         [](int document, int i) { return (document + 1) * kDocument + i; });
}

data::TokenRowOptions pairs_of(int64_t length) {
  return {.kind = TokenRowKind::pairs, .length = length, .batch_size = 1, .shuffle = false, .seed = 5};
}

struct Pair {
  Ids first;
  Ids second;
  bool unrelated = false;
};

// Checks what stands around the texts on the way.
Pair pair_of(const Feeds& row, size_t place = 0) {
  const auto length = static_cast<size_t>(row.at("tokens").shape()[1]);
  const auto tokens = row.at("tokens").data<int32_t>().subspan(place * length, length);
  const auto segments = row.at("segments").data<int32_t>().subspan(place * length, length);
  const auto filled = static_cast<size_t>(row.at("lengths").data<int32_t>()[place]);
  const auto first_end = static_cast<size_t>(std::ranges::find(tokens, kSeparator) - tokens.begin());
  EXPECT_EQ(tokens[0], kBegin);
  EXPECT_EQ(tokens[filled - 1], kSeparator);
  for (size_t i = 0; i < length; ++i) {
    EXPECT_EQ(segments[i], i > first_end && i < filled ? 1 : 0);
    if (i >= filled) {
      EXPECT_EQ(tokens[i], kPadding);
    }
  }
  return {Ids(tokens.begin() + 1, tokens.begin() + static_cast<int64_t>(first_end)),
          Ids(tokens.begin() + static_cast<int64_t>(first_end) + 1,
              tokens.begin() + static_cast<int64_t>(filled) - 1),
          row.at("next_sentence").data<int32_t>()[place] == 1};
}

TEST(TokenPairs, FollowEachOtherInHalfOfTheRows) {
  const TemporaryFolder folder;
  // Pieces of 13 tokens: 4 (the last of one token is left out), 0, 0, 2, 2, 1, 5 and 3 of the documents.
  const TokenRows rows(documents(folder, kLengths), pairs_of(16));
  const std::vector<std::pair<int, int>> pieces{{0, 13}, {0, 13}, {0, 13}, {3, 13}, {3, 4},  {4, 13},
                                                {4, 12}, {5, 2},  {6, 13}, {6, 13}, {6, 13}, {6, 13},
                                                {6, 8},  {7, 13}, {7, 13}, {7, 7}};
  ASSERT_EQ(rows.size(), std::ssize(pieces));
  int unrelated = 0;
  int epochs = 0;
  std::map<size_t, int> cuts;
  for (int64_t epoch = 0; epoch < 50; ++epoch, ++epochs) {
    const auto stream = rows.open({.epoch = epoch});
    for (const auto& [document, tokens] : pieces) {
      const Pair pair = pair_of(stream->next()->fields);
      ASSERT_GE(pair.first.size(), 1U);
      ASSERT_GE(pair.second.size(), 1U);
      EXPECT_EQ(std::ssize(pair.first) + std::ssize(pair.second), tokens) << "whether related or not";
      for (size_t i = 0; i < pair.first.size(); ++i)
        EXPECT_EQ(pair.first[i], pair.first[0] + static_cast<int32_t>(i));
      EXPECT_EQ(pair.first[0] / kDocument, document + 1);
      unrelated += pair.unrelated ? 1 : 0;
      if (tokens == 13) ++cuts[pair.first.size()];
      if (pair.unrelated) {
        EXPECT_NE(pair.second[0], pair.first.back() + 1);
        continue;
      }
      for (size_t i = 0; i < pair.second.size(); ++i)
        EXPECT_EQ(pair.second[i], pair.first.back() + 1 + static_cast<int32_t>(i));
    }
  }
  // Of 800 draws 400, four deviations of 14.
  EXPECT_NEAR(unrelated, 400, 57);
  EXPECT_EQ(cuts.begin()->first, 3U);
  EXPECT_EQ(cuts.rbegin()->first, 10U);
  EXPECT_EQ(cuts.size(), 8U) << "anywhere in the middle half";
}

TEST(TokenPairs, TakeOtherTextsFromAllDocuments) {
  const TemporaryFolder folder;
  const TokenRows rows(documents(folder, kLengths), pairs_of(16));
  std::map<int32_t, int> sources;
  for (int64_t epoch = 0; epoch < 100; ++epoch) {
    const auto stream = rows.open({.epoch = epoch});
    for (int64_t i = 0; i < 3; ++i) {  // the first document's rows
      const Pair pair = pair_of(stream->next()->fields);
      if (pair.unrelated) ++sources[pair.second[0] / kDocument - 1];
    }
  }
  EXPECT_FALSE(sources.contains(2)) << "an empty document";
  for (const int32_t document : {3, 4, 6, 7}) EXPECT_GT(sources[document], 5) << document;
}

// A shard that has fewer tokens than the second text begins anew.
TEST(TokenPairs, AreAsLongWhereOtherDocumentsAreShort) {
  const TemporaryFolder folder;
  const TokenRows rows(documents(folder, {30, 3}), pairs_of(33));
  ASSERT_EQ(rows.size(), 2);
  int unrelated = 0;
  for (int64_t epoch = 0; epoch < 20; ++epoch) {
    const Pair pair = pair_of(rows.open({.epoch = epoch})->next()->fields);
    EXPECT_EQ(pair.first.size() + pair.second.size(), 30U);
    if (!pair.unrelated) continue;
    ++unrelated;
    EXPECT_TRUE(std::ranges::all_of(pair.second, [](int32_t token) { return token >= 2 * kDocument; }));
  }
  EXPECT_GT(unrelated, 0);
}

std::vector<double> all_numbers(data::Stream& stream) {
  std::vector<double> numbers;
  while (const std::optional<data::Batch> batch = stream.next()) {
    for (const auto& [name, tensor] : batch->fields) {
      const std::vector<double> own = tensor.to_doubles();
      numbers.insert(numbers.end(), own.begin(), own.end());
    }
  }
  return numbers;
}

TEST(TokenPairs, GoOnAnywhereWithTheSameBits) {
  const TemporaryFolder folder;
  const auto set = documents(folder, kLengths);
  data::TokenRowOptions options = pairs_of(16);
  options.batch_size = 3;
  options.shuffle = true;
  options.workers = 2;
  const TokenRows rows(set, options);
  const std::vector<double> whole = all_numbers(*rows.open({.epoch = 5}));
  EXPECT_NE(whole, all_numbers(*rows.open({.epoch = 6})));
  const size_t batch_numbers = 3 * (2 * 16 + 2);
  const auto memory = std::make_shared<BatchMemory>(Device::reference());
  for (size_t batch = 0; batch <= 5; ++batch) {
    const auto stream = rows.open_into(memory, {.epoch = 5, .batch = static_cast<int64_t>(batch)});
    EXPECT_EQ(all_numbers(*stream),
              std::vector<double>(whole.begin() + static_cast<int64_t>(batch * batch_numbers), whole.end()));
  }
  options.seed = 6;
  options.shuffle = false;
  const std::vector<double> other = all_numbers(*TokenRows(set, options).open({}));
  options.seed = 5;
  EXPECT_NE(other, all_numbers(*TokenRows(set, options).open({}))) << "pairs are drawn by the seed, too";
}

TEST(TokenPairs, OfATestAreNoneOfTheTraining) {
  const TemporaryFolder folder;
  const auto set = documents(folder, kLengths);
  std::vector<Ids> texts;
  for (const auto& [part, expected] : {std::pair(TokenRowPart::training, 12), {TokenRowPart::test, 4}}) {
    data::TokenRowOptions options = pairs_of(16);
    options.part = part;
    options.test_share = 0.25;
    const TokenRows rows(set, options);
    EXPECT_EQ(rows.size(), expected);
    for (int64_t row = 0; row < rows.size(); ++row) texts.push_back({pair_of(rows.row(row)).first[0]});
  }
  std::ranges::sort(texts);
  EXPECT_EQ(std::ranges::adjacent_find(texts), texts.end());
}

TEST(TokenPairs, FillTheLastBatchWithZeros) {
  const TemporaryFolder folder;
  data::TokenRowOptions options = pairs_of(16);
  options.batch_size = 10;
  options.drop_last = false;
  const TokenRows rows(documents(folder, kLengths), options);
  const auto stream = rows.open({});
  stream->next();
  const std::optional<data::Batch> last = stream->next();
  ASSERT_EQ(last->samples, 6);
  for (const auto& [name, tensor] : last->fields) {
    const int64_t width = tensor.size() / 10;
    for (int64_t i = 6 * width; i < 10 * width; ++i) EXPECT_EQ(tensor.at(i), 0) << name;
  }
  EXPECT_EQ(pair_of(last->fields, 5).first[0] / kDocument, 8);
}

TEST(TokenPairs, SayWhatTheyLack) {
  const auto code = ErrorCode::invalid_argument;
  const TemporaryFolder folder;
  EXPECT_ERROR(TokenRows(documents(folder, kLengths), pairs_of(4)), code, "row of 4 tokens");
  EXPECT_ERROR(TokenRows(documents(folder, {40, 0}), pairs_of(16)), code, "two documents", "has 1");
  data::TokenSetHeader header = kHeader;
  header.separator.reset();
  EXPECT_ERROR(TokenRows(documents(folder, kLengths, header), pairs_of(16)), code, "no separator");
  header.begin.reset();
  EXPECT_ERROR(TokenRows(documents(folder, kLengths, header), pairs_of(16)), code, "[CLS]");
  data::write_token_shard(folder / "a", {.tokens = {5, 6, 7, 8}, .ends = {1, 3, 4, 4}},
                          {.fields = 2, .vocabulary = 9});
  data::write_token_set(folder.path(), {.vocabulary = 9, .fields = 2, .begin = 1, .separator = 2},
                        {{"a", 2, 4}});
  EXPECT_ERROR(TokenRows(std::make_shared<const data::TokenSet>(folder.path()), pairs_of(16)), code,
               "two texts");
}

// Every pair of an epoch stands in one row, as it would alone.
TEST(TokenPairs, ShareRowsWithoutAChange) {
  const TemporaryFolder folder;
  const auto set = documents(folder, kLengths);
  data::TokenRowOptions options = pairs_of(24);
  const TokenRows single(set, options);
  options.packed = 3;
  const TokenRows packed(set, options);
  EXPECT_LT(packed.size(), single.size());
  std::multiset<std::pair<Ids, bool>> alone;
  for (int64_t row = 0; row < single.size(); ++row) {
    const Feeds feeds = single.row(row);
    const auto tokens = feeds.at("tokens").data<int32_t>();
    const int32_t length = feeds.at("lengths").data<int32_t>()[0];
    alone.insert({Ids(tokens.begin(), tokens.begin() + length), feeds.at("next_sentence").at(0) == 1});
  }
  std::multiset<std::pair<Ids, bool>> shared;
  for (int64_t row = 0; row < packed.size(); ++row) {
    const Feeds feeds = packed.row(row);
    ASSERT_EQ(feeds.at("lengths").shape(), (Shape{1, 3}));
    ASSERT_EQ(feeds.at("next_sentence").shape(), (Shape{1, 3}));
    const auto tokens = feeds.at("tokens").data<int32_t>();
    const auto segments = feeds.at("segments").data<int32_t>();
    int64_t begin = 0;
    for (size_t pair = 0; pair < 3; ++pair) {
      const int32_t length = feeds.at("lengths").data<int32_t>()[pair];
      if (length == 0) continue;
      EXPECT_EQ(segments[static_cast<size_t>(begin)], 0);
      EXPECT_EQ(segments[static_cast<size_t>(begin + length - 1)], 1);
      shared.insert({Ids(tokens.begin() + begin, tokens.begin() + begin + length),
                     feeds.at("next_sentence").data<int32_t>()[pair] == 1});
      begin += length;
    }
    for (int64_t i = begin; i < 24; ++i) EXPECT_EQ(tokens[static_cast<size_t>(i)], kPadding);
  }
  EXPECT_EQ(shared, alone);
}

TEST(TokenPairs, ShareRowsOfTheTextsOfTheirPart) {
  const TemporaryFolder folder;
  const auto set = documents(folder, kLengths);
  int64_t pairs = 0;
  for (const TokenRowPart part : {TokenRowPart::training, TokenRowPart::test}) {
    data::TokenRowOptions options = pairs_of(24);
    options.part = part;
    options.test_share = 0.3;
    options.packed = 3;
    const TokenRows packed(set, options);
    for (int64_t row = 0; row < packed.size(); ++row) {
      for (const double length : packed.row(row).at("lengths").to_doubles()) pairs += length > 0 ? 1 : 0;
    }
  }
  EXPECT_EQ(pairs, TokenRows(set, pairs_of(24)).size());
}

TEST(TokenPairs, AreWhatAloneSharesRows) {
  const TemporaryFolder folder;
  data::TokenRowOptions options = pairs_of(24);
  options.kind = TokenRowKind::documents;
  options.packed = 2;
  EXPECT_ERROR(TokenRows(documents(folder, kLengths), options), ErrorCode::invalid_argument, "2 texts",
               "pairs");
}

}  // namespace
}  // namespace tessera::testing
