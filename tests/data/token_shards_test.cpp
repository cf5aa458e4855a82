#include "tessera/data/token_shards.h"

#include <fstream>

#include <gtest/gtest.h>

#include "support/expect_error.h"
#include "support/temporary_folder.h"

namespace tessera::testing {
namespace {

using data::TokenDocuments;
using data::TokenShard;

const TokenDocuments kDocuments{.tokens = {5, 6, 7, 300, 9, 5}, .ends = {2, 2, 5, 6}};

std::vector<int32_t> tokens_of(const TokenShard& shard, int64_t document, int64_t field = 0) {
  const TokenShard::Place place = shard.place(document, field);
  std::vector<int32_t> tokens(static_cast<size_t>(place.end - place.begin));
  shard.read(place.begin, tokens);
  return tokens;
}

TEST(TokenShard, KeepsDocumentsInTwoOrFourBytesAToken) {
  const TemporaryFolder folder;
  for (const int64_t vocabulary : {301, 65536, 65537}) {
    const auto path = folder / std::to_string(vocabulary);
    data::write_token_shard(path, kDocuments, {.vocabulary = vocabulary, .tokenizer = 77});
    const TokenShard shard(path);
    EXPECT_EQ(shard.documents(), 4);
    EXPECT_EQ(shard.tokens(), 6);
    EXPECT_EQ(shard.vocabulary(), vocabulary);
    EXPECT_EQ(shard.tokenizer(), 77u);
    EXPECT_EQ(shard.bytes_per_token(), vocabulary <= 65536 ? 2 : 4);
    EXPECT_EQ(tokens_of(shard, 0), (std::vector<int32_t>{5, 6}));
    EXPECT_EQ(tokens_of(shard, 1), (std::vector<int32_t>{}));
    EXPECT_EQ(tokens_of(shard, 2), (std::vector<int32_t>{7, 300, 9}));
    EXPECT_EQ(tokens_of(shard, 3), (std::vector<int32_t>{5}));
    shard.verify();
    EXPECT_ERROR(shard.place(4), ErrorCode::invalid_argument, "document 4");
    std::vector<int32_t> two(2);
    EXPECT_ERROR(shard.read(5, two), ErrorCode::invalid_argument, "2 tokens from 5 on, of 6");
  }
}

TEST(TokenShard, KeepsTextsWithTheirTranslations) {
  const TemporaryFolder folder;
  data::write_token_shard(folder / "pairs", kDocuments, {.fields = 2, .vocabulary = 400});
  const TokenShard shard(folder / "pairs");
  EXPECT_EQ(shard.documents(), 2);
  EXPECT_EQ(tokens_of(shard, 1, 0), (std::vector<int32_t>{7, 300, 9}));
  EXPECT_EQ(tokens_of(shard, 1, 1), (std::vector<int32_t>{5}));
  EXPECT_ERROR(shard.place(0, 2), ErrorCode::invalid_argument, "field 2");
}

TEST(TokenShard, IsNotWrittenOfWhatCannotBe) {
  const TemporaryFolder folder;
  const auto write = [&](const TokenDocuments& documents, const data::TokenShardOptions& options) {
    data::write_token_shard(folder / "shard", documents, options);
  };
  EXPECT_ERROR(write(kDocuments, {.vocabulary = 300}), ErrorCode::invalid_argument, "token 300", "300");
  EXPECT_ERROR(write({.tokens = {1, 2}, .ends = {2, 1}}, {.vocabulary = 9}), ErrorCode::invalid_argument,
               "ends at token 1");
  EXPECT_ERROR(write({.tokens = {1, 2}, .ends = {1}}, {.vocabulary = 9}), ErrorCode::invalid_argument,
               "end at token 1 of 2");
  EXPECT_ERROR(write({.tokens = {1}, .ends = {1}}, {.fields = 2, .vocabulary = 9}),
               ErrorCode::invalid_argument, "whole documents");
  EXPECT_FALSE(std::filesystem::exists(folder / "shard"));
}

// Whatever byte is changed, and wherever the file is cut, it is refused when it is opened or when it is
// verified.
TEST(TokenShard, IsRefusedWhereAByteIsChangedOrLost) {
  const TemporaryFolder folder;
  data::write_token_shard(folder / "whole", kDocuments, {.vocabulary = 301});
  const std::string whole = read_text_file(folder / "whole");
  TokenShard(folder / "whole").verify();
  const auto is_refused = [&](const std::string& bytes) {
    std::ofstream(folder / "broken", std::ios::binary) << bytes;  // not synced: there are many
    try {
      TokenShard(folder / "broken").verify();
    } catch (const Error& error) {
      return error.code() == ErrorCode::invalid_file;
    }
    return false;
  };
  constexpr size_t kReserved = 56;  // the only bytes of the header that nothing depends on
  for (size_t i = 0; i < whole.size(); ++i) {
    if (i >= kReserved && i < 64) continue;
    std::string changed = whole;
    changed[i] = static_cast<char>(changed[i] ^ 0x40);
    EXPECT_TRUE(is_refused(changed)) << "byte " << i;
  }
  for (size_t length = 0; length < whole.size(); ++length)
    EXPECT_TRUE(is_refused(whole.substr(0, length))) << length;
  EXPECT_TRUE(is_refused(whole + '\0'));
}

TEST(TokenSet, ListsItsShards) {
  const TemporaryFolder folder;
  EXPECT_ERROR(data::TokenSet(folder.path()), ErrorCode::io, "no tokens.json", "data tokenize");
  data::write_token_shard(folder / "a.tokens", kDocuments, {.vocabulary = 301, .tokenizer = 1});
  const data::TokenSetHeader header{.vocabulary = 301, .tokenizer = 1, .separator = 3, .mask = 4};
  data::write_token_set(folder.path(), header, {{"a.tokens", 4, 6}, {"a.tokens", 4, 6}});
  const data::TokenSet set(folder.path());
  EXPECT_EQ(set.documents(), 8);
  EXPECT_EQ(set.tokens(), 12);
  EXPECT_EQ(set.header().separator, 3);
  EXPECT_EQ(set.header().mask, 4);
  EXPECT_FALSE(set.header().padding.has_value());
  data::write_token_set(folder.path(), header, {{"a.tokens", 4, 7}});
  EXPECT_ERROR(data::TokenSet(folder.path()), ErrorCode::invalid_file, "a.tokens", "not the shard");
  data::write_token_set(folder.path(), header, {{"../a.tokens", 4, 6}});
  EXPECT_ERROR(data::TokenSet(folder.path()), ErrorCode::invalid_file, "no file of this folder");
  write_file(folder / "tokens.json",
             R"({"version": 1, "vocabulary": 301, "tokenizer": 1, "fields": 3, "shards": []})");
  EXPECT_ERROR(data::TokenSet(folder.path()), ErrorCode::invalid_file, "'fields' is 3");
}

}  // namespace
}  // namespace tessera::testing
