#include "tessera/text/training.h"

#include <gtest/gtest.h>

#include "tessera/base/file.h"

#include "support/expect_error.h"
#include "support/temporary_folder.h"

namespace tessera::testing {
namespace {

using Ids = std::vector<int32_t>;
using Merges = std::vector<std::pair<std::string, std::string>>;
using text::VocabularyKind;

text::LearnedVocabulary learn(const text::VocabularyOptions& options, const std::vector<std::string>& texts) {
  text::VocabularyLearner learner(options);
  for (const std::string& text : texts) learner.add(text);
  return learner.learn();
}

TEST(VocabularyLearner, JoinsTheMostFrequentPairFirst) {
  const auto learned =
      learn({.kind = VocabularyKind::byte_pairs, .size = 261}, {"hug hug hug", "pug pug", "hugs"});
  // u g is met 6 times, h ug then 4 times; of those met twice that of lower ids comes first.
  EXPECT_EQ(learned.merges, (Merges{{"u", "g"}, {"h", "ug"}, {"p", "ug"}, {"\u0120", "hug"}}));
  EXPECT_EQ(learned.tokens.size(), 261u);
  EXPECT_EQ(learned.tokens[0], "<|endoftext|>");
}

TEST(VocabularyLearner, StopsWherePairsAreRare) {
  const auto learned =
      learn({.kind = VocabularyKind::byte_pairs, .size = 1000, .minimum_frequency = 3}, {"abab cd cd", "ab"});
  EXPECT_EQ(learned.merges, (Merges{{"a", "b"}}));
}

TEST(VocabularyLearner, CountsRunsOfOneCharacterOnce) {
  const auto learned = learn({.kind = VocabularyKind::byte_pairs, .size = 1000}, {"aaaa", "aaaa"});
  EXPECT_EQ(learned.merges, (Merges{{"a", "a"}, {"aa", "aa"}}));
}

TEST(VocabularyLearner, MarksWhatContinuesAWord) {
  // a ##b is met 3 times, then ab ##ab (of ##a ##b) twice.
  const auto learned = learn({.size = 13}, {"Abab abab", "abc"});
  EXPECT_EQ(learned.tokens, (std::vector<std::string>{"[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", "a", "b",
                                                      "c", "##a", "##b", "##c", "ab", "##ab"}));
  EXPECT_EQ(learned.merges, (Merges{{"a", "##b"}, {"##a", "##b"}}));
}

TEST(VocabularyLearner, DependsOnTheTextsAloneNotOnTheirOrder) {
  const std::vector<std::string> texts = {"one two three", "two three four", "three four five five", "six"};
  const std::vector<std::string> reversed(texts.rbegin(), texts.rend());
  for (const VocabularyKind kind : {VocabularyKind::wordpiece, VocabularyKind::byte_pairs}) {
    EXPECT_EQ(learn({.kind = kind, .size = 300}, texts).tokens,
              learn({.kind = kind, .size = 300}, reversed).tokens);
  }
}

TEST(VocabularyLearner, LimitsTheAlphabet) {
  const auto learned = learn({.size = 100, .alphabet = 2}, {"aab aab ac"});
  const auto has = [&](const std::string& token) {
    return std::find(learned.tokens.begin(), learned.tokens.end(), token) != learned.tokens.end();
  };
  EXPECT_TRUE(has("a") && has("##b") && has("aab"));
  EXPECT_FALSE(has("c") || has("##c"));
}

TEST(VocabularyLearner, WritesWhatIsReadAgain) {
  const TemporaryFolder folder;
  const std::vector<std::string> texts = {"Some words, some \"more\" words \\ and wörter.",
                                          "some more words"};
  for (const VocabularyKind kind : {VocabularyKind::wordpiece, VocabularyKind::byte_pairs}) {
    const auto learned = learn({.kind = kind, .size = 280, .lower_case = false}, texts);
    const auto path = folder / (kind == VocabularyKind::wordpiece ? "words" : "bytes");
    text::write_tokenizer(learned, path);
    const text::Tokenizer whole = text::read_tokenizer(path);
    std::filesystem::remove(path / "tokenizer.json");
    const text::Tokenizer parts = text::read_tokenizer(path);
    EXPECT_EQ(whole.vocabulary_size(), std::ssize(learned.tokens));
    for (const std::string& text : texts) {
      EXPECT_EQ(whole.encode(text).ids, parts.encode(text).ids);
      EXPECT_EQ(whole.decode(whole.encode(text).ids).substr(0, 4), text.substr(0, 4));
    }
    EXPECT_LT(whole.encode(texts[1]).ids.size(), 8u) << "words that are met several times are tokens";
  }
}

TEST(VocabularyLearner, RefusesWhatCannotBe) {
  EXPECT_ERROR(learn({.kind = VocabularyKind::byte_pairs, .size = 256}, {"a"}), ErrorCode::invalid_argument,
               "256", "257");
  EXPECT_ERROR(learn({.size = 100}, {"", " \n"}), ErrorCode::invalid_argument, "no word");
  EXPECT_ERROR(learn({.special_tokens = {"[PAD]"}}, {"a"}), ErrorCode::invalid_argument, "[UNK]");
  EXPECT_ERROR(learn({.special_tokens = {"[UNK]", "[UNK]"}}, {"a"}), ErrorCode::invalid_argument,
               "different");
}

}  // namespace
}  // namespace tessera::testing
