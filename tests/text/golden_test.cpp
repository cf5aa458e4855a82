// What other libraries make of the same lines: tests/text/golden/tokens.py.
#include <filesystem>

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "tessera/base/file.h"
#include "tessera/text/tokenizer.h"
#include "tessera/text/training.h"

#include "support/expect_error.h"
#include "test_folder.h"

namespace tessera::testing {
namespace {

using Json = nlohmann::json;

const std::filesystem::path kFolder = std::filesystem::path(TESSERA_TEST_FOLDER) / "golden";

const Json& golden() {
  static const Json json = Json::parse(read_text_file(kFolder / "tokens.json"));
  return json;
}

std::vector<std::string> lines() {
  return golden().at("lines").get<std::vector<std::string>>();
}

// Bytes of "0a1b".
std::string from_hexadecimal(const std::string& text) {
  std::string bytes;
  for (size_t i = 0; i < text.size(); i += 2)
    bytes += static_cast<char>(std::stoi(text.substr(i, 2), nullptr, 16));
  return bytes;
}

// Of each line the ids, the text that they become again, and the places.
void expect_golden(const char* name) {
  const text::Tokenizer tokenizer = text::read_tokenizer(kFolder / (std::string(name) + ".json"));
  const Json& expected = golden().at(name);
  for (size_t i = 0; i < lines().size(); ++i) {
    const std::string line = lines()[i];
    const text::Encoding encoding = tokenizer.encode(line, {.offsets = true});
    EXPECT_EQ(encoding.ids, expected[i].at("ids").get<std::vector<int32_t>>())
        << "line " << i << ": " << line;
    EXPECT_EQ(tokenizer.decode(encoding.ids), expected[i].at("text").get<std::string>()) << "line " << i;
    std::vector<text::Span> places;
    for (const Json& place : expected[i].at("offsets")) places.push_back({place[0], place[1]});
    EXPECT_EQ(encoding.offsets, places) << "line " << i << ": " << line;
  }
}

TEST(Golden, WordPiecesAreThoseOfTokenizers) {
  expect_golden("words");
}

TEST(Golden, BytePairsAreThoseOfTokenizers) {
  expect_golden("bytes");
}

TEST(Golden, WhatIsNoUtf8IsReplacedAsThere) {
  for (const char* name : {"words", "bytes"}) {
    const text::Tokenizer tokenizer = text::read_tokenizer(kFolder / (std::string(name) + ".json"));
    const Json& expected = golden().at(std::string("broken_") + name);
    for (size_t i = 0; i < expected.size(); ++i) {
      const std::string line = from_hexadecimal(golden().at("broken")[i].get<std::string>());
      EXPECT_EQ(tokenizer.encode(line).ids, expected[i].get<std::vector<int32_t>>())
          << name << ", line " << i;
    }
  }
}

TEST(Golden, MergesAreThoseThatTokenizersLearns) {
  text::VocabularyLearner learner({.kind = text::VocabularyKind::byte_pairs, .size = 600});
  for (const std::string& line : lines()) learner.add(line);
  EXPECT_EQ(learner.learn().merges,
            (golden().at("learned").get<std::vector<std::pair<std::string, std::string>>>()));
}

TEST(Golden, SentencePiecesAreThoseOfTheirLibrary) {
  std::optional<text::Tokenizer> tokenizer;
  try {
    tokenizer = text::read_tokenizer(kFolder / "pieces.model");
  } catch (const Error& error) {
    // The library is optional (packages.txt, group extra); any other error is a failure.
    ASSERT_EQ(error.code(), ErrorCode::unsupported) << error.what();
    GTEST_SKIP() << error.what();
  }
  EXPECT_EQ(tokenizer->kind(), "sentence_piece");
  const Json& expected = golden().at("pieces");
  for (size_t i = 0; i < lines().size(); ++i) {
    const text::Encoding encoding = tokenizer->encode(lines()[i], {.offsets = true});
    EXPECT_EQ(encoding.ids, expected[i].at("ids").get<std::vector<int32_t>>()) << "line " << i;
    EXPECT_EQ(tokenizer->decode(encoding.ids), expected[i].at("text").get<std::string>()) << "line " << i;
    for (const text::Span& place : encoding.offsets) EXPECT_LE(place.end, lines()[i].size());
  }
  const auto surrounded = text::parse_sentence_piece(read_text_file(kFolder / "pieces.model"), "pieces.model",
                                                     {.begin = true, .end = true});
  const std::vector<int32_t> ids = surrounded.encode("text").ids;
  EXPECT_EQ(surrounded.token(ids.front()), "<s>");
  EXPECT_EQ(surrounded.token(ids.back()), "</s>");
  EXPECT_EQ(surrounded.decode(ids), "text");
  EXPECT_ERROR(text::parse_sentence_piece("no model", "x.model"), ErrorCode::invalid_file, "x.model");
}

}  // namespace
}  // namespace tessera::testing
