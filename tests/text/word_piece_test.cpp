#include <gtest/gtest.h>

#include "tessera/text/tokenizer.h"

#include "support/expect_error.h"

namespace tessera::testing {
namespace {

using Ids = std::vector<int32_t>;

// Ids are the lines' numbers.
constexpr const char* kVocabulary =
    "[PAD]\n[UNK]\n[CLS]\n[SEP]\n[MASK]\nun\n##aff\n##able\n##a\nwant\n,\n##ed\ncafe\n水\nrun\n##ning\n!\n";

text::Tokenizer tokenizer(const text::WordPieceOptions& options = {}) {
  return text::parse_word_pieces(kVocabulary, "vocab.txt", options);
}

TEST(WordPiece, TakesTheLongestTokenFromTheLeft) {
  EXPECT_EQ(tokenizer().encode("unaffable wanted").ids, (Ids{2, 5, 6, 7, 9, 11, 3}));
  EXPECT_EQ(tokenizer().encode("unaffable", {.special_tokens = false}).ids, (Ids{5, 6, 7}));
}

TEST(WordPiece, OfAWordWithAnUnknownPartIsOneUnknownToken) {
  EXPECT_EQ(tokenizer().encode("unaffx want").ids, (Ids{2, 1, 9, 3}));
  EXPECT_EQ(tokenizer({.longest_word = 4}).encode("running run", {.special_tokens = false}).ids,
            (Ids{1, 14}));
}

TEST(WordPiece, LosesCaseAccentsAndControlCharacters) {
  EXPECT_EQ(tokenizer().encode("CAF\u00C9,\u0000\u200Bcafe\u0301", {.special_tokens = false}).ids,
            (Ids{12, 10}));  // a string literal ends at its zero
  EXPECT_EQ(tokenizer().encode(std::string_view("c\0af\u200B\u00E9", 9), {.special_tokens = false}).ids,
            (Ids{12}));
  EXPECT_EQ(tokenizer({.lower_case = false}).encode("CAFE cafe", {.special_tokens = false}).ids,
            (Ids{1, 12}));
}

TEST(WordPiece, SeparatesIdeographsAndPunctuation) {
  EXPECT_EQ(tokenizer().encode("run水水!!want", {.special_tokens = false}).ids, (Ids{14, 13, 13, 16, 16, 9}));
}

TEST(WordPiece, FindsSpecialTokensInTheText) {
  EXPECT_EQ(tokenizer().encode("un[MASK]want[mask]", {.special_tokens = false}).ids, (Ids{5, 4, 9, 1, 1, 1}));
}

TEST(WordPiece, SaysWhereTokensStand) {
  const text::Encoding encoding = tokenizer().encode("CAF\u00C9 水wanted", {.offsets = true});
  EXPECT_EQ(encoding.ids, (Ids{2, 12, 13, 9, 11, 3}));
  EXPECT_EQ(encoding.offsets, (std::vector<text::Span>{{0, 0}, {0, 5}, {6, 9}, {9, 13}, {13, 15}, {0, 0}}));
}

TEST(WordPiece, TakesWhatIsNoUtf8AsAReplacementCharacter) {
  // It is removed, as in BERT.
  const text::Encoding encoding = tokenizer().encode(
      "ca\xFF\xE6\xB0"
      "fe \xC3want",
      {.special_tokens = false, .offsets = true});
  EXPECT_EQ(encoding.ids, (Ids{12, 9}));
  EXPECT_EQ(encoding.offsets, (std::vector<text::Span>{{0, 7}, {9, 13}}));
}

TEST(WordPiece, JoinsPairs) {
  const text::Encoding encoding = tokenizer().encode_pair("run", "wanted");
  EXPECT_EQ(encoding.ids, (Ids{2, 14, 3, 9, 11, 3}));
  EXPECT_EQ(encoding.types, (Ids{0, 0, 0, 1, 1, 1}));
}

TEST(WordPiece, CutsWhatIsTooLong) {
  EXPECT_EQ(tokenizer().encode("run want un", {.maximum_length = 4}).ids, (Ids{2, 14, 9, 3}));
  const auto pair = [](int64_t length, text::Truncation which) {
    return tokenizer()
        .encode_pair("run run run", "want want un un un", {.maximum_length = length, .truncation = which})
        .ids;
  };
  EXPECT_EQ(pair(9, text::Truncation::longest_first), (Ids{2, 14, 14, 14, 3, 9, 9, 5, 3}));
  EXPECT_EQ(pair(7, text::Truncation::longest_first), (Ids{2, 14, 14, 3, 9, 9, 3}));
  EXPECT_EQ(pair(10, text::Truncation::only_first), (Ids{2, 14, 14, 3, 9, 9, 5, 5, 5, 3}));
  EXPECT_EQ(pair(8, text::Truncation::only_second), (Ids{2, 14, 14, 14, 3, 9, 9, 3}));
  EXPECT_ERROR(pair(8, text::Truncation::only_first), ErrorCode::invalid_argument, "3 too many", "first");
  EXPECT_ERROR(tokenizer().encode("run", {.maximum_length = 2}), ErrorCode::invalid_argument, "no place");
}

TEST(WordPiece, BecomesTextAgain) {
  EXPECT_EQ(tokenizer().decode(Ids{2, 5, 6, 7, 10, 9, 11, 16, 3}), "unaffable, wanted!");
  EXPECT_EQ(tokenizer().decode(Ids{2, 14}, false), "[CLS] run");
  EXPECT_ERROR(tokenizer().decode(Ids{17}), ErrorCode::invalid_argument, "17", "no token");
}

TEST(WordPiece, NeedsItsUnknownToken) {
  EXPECT_ERROR(text::parse_word_pieces("a\nb\n", "vocab.txt"), ErrorCode::invalid_file, "vocab.txt", "[UNK]");
}

}  // namespace
}  // namespace tessera::testing
