#include <thread>

#include <gtest/gtest.h>

#include "tessera/base/file.h"
#include "tessera/text/tokenizer.h"

#include "support/expect_error.h"
#include "support/temporary_folder.h"

namespace tessera::testing {
namespace {

using Ids = std::vector<int32_t>;

// A word-piece tokenizer with those parts in the place of its own.
std::string words(const std::string& parts) {
  const std::string model =
      R"({"model": {"type": "WordPiece", "unk_token": "?", "vocab": {"?": 0, "a": 1, "b": 2,
      "##b": 3, "ab": 4, "1": 5, "##1": 6, ".": 7, "##.": 8, "..": 9, "c d": 10, "A": 11}})";
  return model + (parts.empty() ? "" : ", ") + parts + "}";
}

Ids ids_of(const std::string& json, const std::string& text) {
  return text::parse_tokenizer_json(json, "t.json").encode(text).ids;
}

TEST(TokenizerJson, CutsWordsAsItSays) {
  const auto ids = [](const std::string& pre_tokenizer, const std::string& text) {
    return ids_of(words(R"("pre_tokenizer": )" + pre_tokenizer), text);
  };
  EXPECT_EQ(ids("null", "ab"), (Ids{4}));
  EXPECT_EQ(ids("null", "c d"), (Ids{10})) << "the whole text is a word";
  EXPECT_EQ(ids(R"({"type": "WhitespaceSplit"})", " ab\u3000b. "), (Ids{4, 2, 8}));
  EXPECT_EQ(ids(R"({"type": "Whitespace"})", "ab b.."), (Ids{4, 2, 9}));
  EXPECT_EQ(ids(R"({"type": "Punctuation"})", "ab..b"), (Ids{4, 7, 7, 2}));
  EXPECT_EQ(ids(R"({"type": "Punctuation", "behavior": "Contiguous"})", "ab..b"), (Ids{4, 9, 2}));
  EXPECT_EQ(ids(R"({"type": "Punctuation", "behavior": "Removed"})", "ab..b"), (Ids{4, 2}));
  EXPECT_EQ(ids(R"({"type": "Punctuation", "behavior": "MergedWithPrevious"})", "ab..b"), (Ids{4, 8, 7, 2}));
  EXPECT_EQ(ids(R"({"type": "Digits", "individual_digits": true})", "a11b"), (Ids{1, 5, 5, 2}));
  EXPECT_EQ(ids(R"({"type": "Digits"})", "a11b"), (Ids{1, 5, 6, 2}));
  const std::string list =
      R"({"type": "Sequence", "pretokenizers": [{"type": "WhitespaceSplit"}, {"type": "Split",
    "pattern": {"Regex": "\\d|b"}, "behavior": "MergedWithNext", "invert": false}]})";
  EXPECT_EQ(ids(list, "a1b ab."), (Ids{1, 5, 2, 1, 2, 8}));
  EXPECT_EQ(ids(R"({"type": "Split", "pattern": {"String": "."}, "behavior": "Removed"})", "ab.b"),
            (Ids{4, 2}));
}

TEST(TokenizerJson, NormalizesAsItSays) {
  const auto ids = [](const std::string& normalizers, const std::string& text) {
    return ids_of(words(R"("normalizer": {"type": "Sequence", "normalizers": [)" + normalizers + "]}"), text);
  };
  EXPECT_EQ(ids("", "A"), (Ids{11}));
  EXPECT_EQ(ids(R"({"type": "Lowercase"})", "AB"), (Ids{4}));
  EXPECT_EQ(ids(R"({"type": "NFKC"})", "\uFF41b"), (Ids{4}));
  EXPECT_EQ(ids(R"({"type": "NFD"}, {"type": "StripAccents"})", "\u00E1b"), (Ids{4}));
  EXPECT_EQ(ids(R"({"type": "Strip", "strip_left": true, "strip_right": true})", " ab\n"), (Ids{4}));
  EXPECT_EQ(ids(R"({"type": "Prepend", "prepend": "a"})", "b"), (Ids{4}));
  EXPECT_EQ(ids(R"({"type": "Replace", "pattern": {"String": "xx"}, "content": "b"})", "axxxxx"), (Ids{0}));
  EXPECT_EQ(ids(R"({"type": "Replace", "pattern": {"String": "xx"}, "content": "b"})", "axxxx"), (Ids{4, 3}));
}

TEST(TokenizerJson, RefusesNormalizersThatFillTheMemory) {
  std::string normalizers;
  for (int i = 0; i < 30; ++i) {
    normalizers += normalizers.empty() ? "" : ",";
    normalizers += R"({"type": "Replace", "pattern": {"String": "a"}, "content": "aaaaaaaa"})";
  }
  const std::string json =
      words(R"("normalizer": {"type": "Sequence", "normalizers": [)" + normalizers + "]}");
  EXPECT_ERROR(ids_of(json, "a"), ErrorCode::invalid_argument, "more than 1048640 bytes of one text");
}

TEST(TokenizerJson, FindsAddedTokensInTheText) {
  const std::string json =
      words(R"("pre_tokenizer": {"type": "WhitespaceSplit"}, "normalizer": {"type": "Lowercase"},
    "added_tokens": [
      {"id": 12, "content": "<m>", "special": true, "normalized": false, "lstrip": true, "rstrip": true},
      {"id": 13, "content": "<m>x", "special": false, "normalized": false},
      {"id": 14, "content": "Big", "special": false, "normalized": true},
      {"id": 15, "content": "b", "special": false, "normalized": false, "single_word": true}])");
  const text::Tokenizer tokenizer = text::parse_tokenizer_json(json, "t.json");
  const text::Encoding encoding = tokenizer.encode("a <m> BIG<m>x", {.offsets = true});
  EXPECT_EQ(encoding.ids, (Ids{1, 12, 14, 13}));
  EXPECT_EQ(encoding.offsets, (std::vector<text::Span>{{0, 1}, {1, 6}, {6, 9}, {9, 13}}));
  EXPECT_EQ(tokenizer.encode("ab b").ids, (Ids{4, 15}));
  EXPECT_EQ(tokenizer.vocabulary_size(), 16);
  EXPECT_TRUE(tokenizer.is_special(12));
  EXPECT_EQ(tokenizer.decode(Ids{1, 12, 14}), "a Big");
}

TEST(TokenizerJson, PutsTokensAroundTexts) {
  const std::string json = words(R"("post_processor": {"type": "TemplateProcessing",
    "single": [{"SpecialToken": {"id": "x", "type_id": 0}}, {"Sequence": {"id": "A", "type_id": 0}}],
    "pair": [{"Sequence": {"id": "B", "type_id": 2}}, {"SpecialToken": {"id": "x", "type_id": 1}}, {"Sequence": {"id": "A", "type_id": 0}}],
    "special_tokens": {"x": {"id": "x", "ids": [7, 9], "tokens": [".", ".."]}}})");
  const text::Tokenizer tokenizer = text::parse_tokenizer_json(json, "t.json");
  EXPECT_EQ(tokenizer.encode("a").ids, (Ids{7, 9, 1}));
  EXPECT_EQ(tokenizer.encode_pair("a", "b").ids, (Ids{2, 7, 9, 1}));
  EXPECT_EQ(tokenizer.encode_pair("a", "b").types, (Ids{2, 1, 1, 0}));
  const std::string roberta =
      words(R"("post_processor": {"type": "RobertaProcessing", "cls": ["a", 1], "sep": ["b", 2]})");
  EXPECT_EQ(text::parse_tokenizer_json(roberta, "t.json").encode_pair("a", "b").ids, (Ids{1, 1, 2, 2, 2, 2}));
}

TEST(TokenizerJson, NamesWhatItDoesNotKnow) {
  const auto refused = [](const std::string& json, const std::string& word) {
    EXPECT_ERROR(text::parse_tokenizer_json(json, "t.json"), ErrorCode::unsupported, "t.json", word);
  };
  refused(R"({"model": {"type": "Unigram", "vocab": []}})", "'Unigram'");
  refused(words(R"("normalizer": {"type": "Precompiled"})"), "normalizer 'Precompiled'");
  refused(words(R"("pre_tokenizer": {"type": "Metaspace"})"), "pre_tokenizer 'Metaspace'");
  refused(words(R"("post_processor": {"type": "Odd"})"), "post_processor 'Odd'");
  refused(words(R"("decoder": {"type": "CTC"})"), "decoder 'CTC'");
  refused(words(R"("pre_tokenizer": {"type": "ByteLevel"})"), "'WordPiece' of bytes");
  refused(R"({"model": {"type": "BPE", "vocab": {}, "merges": []}})", "'BPE' not of bytes");
  refused(
      R"({"model": {"type": "BPE", "vocab": {}, "merges": [], "dropout": 0.1}, "pre_tokenizer": {"type": "ByteLevel"}})",
      "dropout");
}

TEST(TokenizerJson, SaysWhatIsBroken) {
  const auto broken = [](const std::string& json, const std::string& word) {
    EXPECT_ERROR(text::parse_tokenizer_json(json, "t.json"), ErrorCode::invalid_file, "t.json", word);
  };
  broken("{", "no JSON");
  broken("[]", "expected an object");
  broken("{}", "no 'model'");
  broken(R"({"model": {"type": "WordPiece", "vocab": {"a": 0}}})", "[UNK]");
  broken(R"({"model": {"type": "WordPiece", "unk_token": "a", "vocab": {"a": 99999999}}})", "99999999");
  broken(R"({"model": {"type": "WordPiece", "unk_token": "a", "vocab": {"a": "0"}}})", "'a' is string");
  broken(
      R"({"model": {"type": "BPE", "vocab": {"a": 0}, "merges": ["a b"]}, "pre_tokenizer": {"type": "ByteLevel"}})",
      "merge 1 is of 'b'");
  broken(
      R"({"model": {"type": "BPE", "vocab": {"a": 0}, "merges": ["a"]}, "pre_tokenizer": {"type": "ByteLevel"}})",
      "no pair");
  broken(words(R"("pre_tokenizer": {"type": "Split", "pattern": {"Regex": "("}})"), "regular expression");
  broken(words(R"("post_processor": {"type": "BertProcessing", "cls": ["a", 1], "sep": ["b", 20]})"), "20");
}

TEST(Tokenizer, IsReadFromAFolderOrItsFiles) {
  const TemporaryFolder folder;
  EXPECT_ERROR(text::read_tokenizer(folder.path()), ErrorCode::io, "holds no tokenizer.json");
  EXPECT_ERROR(text::read_tokenizer(folder / "x.bin"), ErrorCode::invalid_argument, "x.bin",
               "tokenizer.json");
  write_file(folder / "encoder.json", R"({"a": 0, "b": 1, "ab": 2, "<|endoftext|>": 3})");
  EXPECT_ERROR(text::read_tokenizer(folder / "encoder.json"), ErrorCode::io, "vocab.bpe", "missing");
  write_file(folder / "vocab.bpe", "#version: 0.2\na b\n");
  EXPECT_EQ(text::read_tokenizer(folder.path()).encode("abab<|endoftext|>a").ids, (Ids{2, 2, 3, 0}));
  write_file(folder / "vocab.txt", "[UNK]\na\nA\n");
  EXPECT_EQ(text::read_tokenizer(folder.path()).encode("A").ids, (Ids{1}));
  write_file(folder / "tokenizer_config.json", R"({"do_lower_case": false})");
  EXPECT_EQ(text::read_tokenizer(folder.path()).encode("A").ids, (Ids{2}));
  EXPECT_EQ(text::tokenizer_files(folder.path()).size(), 2u);
  write_file(folder / "tokenizer.json", words(""));
  EXPECT_EQ(text::read_tokenizer(folder.path()).encode("A").ids, (Ids{11}));
}

// Each thread has memory and a cache of its own; under the thread sanitizer that is held too.
TEST(Tokenizer, MayBeUsedBySeveralThreads) {
  const text::Tokenizer tokenizer =
      text::parse_tokenizer_json(words(R"("pre_tokenizer": {"type": "WhitespaceSplit"})"), "t.json");
  std::vector<Ids> results(4);
  std::vector<std::thread> threads;
  for (Ids& result : results) {
    threads.emplace_back([&] {
      for (int i = 0; i < 500; ++i)
        tokenizer.append_tokens("ab b" + std::string(static_cast<size_t>(i % 7), 'b') + " 1.", result);
    });
  }
  for (std::thread& thread : threads) thread.join();
  for (const Ids& result : results) EXPECT_EQ(result, results[0]);
  EXPECT_GT(results[0].size(), 2000u);
}

// The cache forgets all when it is full.
TEST(Tokenizer, RemembersNoMoreThanItMay) {
  const text::Tokenizer tokenizer =
      text::parse_tokenizer_json(words(R"("pre_tokenizer": {"type": "WhitespaceSplit"})"), "t.json");
  Ids ids;
  for (int i = 0; i < 40000; ++i) tokenizer.append_tokens("word" + std::to_string(i), ids);
  for (const int32_t id : ids) ASSERT_EQ(id, 0);
  ids.clear();
  tokenizer.append_tokens("ab word7 ab", ids);
  EXPECT_EQ(ids, (Ids{4, 0, 4}));
}

}  // namespace
}  // namespace tessera::testing
