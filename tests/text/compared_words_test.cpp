#include "tessera/text/compared_words.h"

#include <gtest/gtest.h>

namespace tessera::testing {
namespace {

using Words = std::vector<std::string>;

TEST(ComparedWords, HaveNeitherCaseNorPunctuationNorArticles) {
  const auto expect = [](const std::string& text, const Words& words) {
    EXPECT_EQ(text::compared_words(text), words) << text;
  };
  expect("The Tao, of  Programming!", {"tao", "of", "programming"});
  expect("a an the", {});
  expect("Another theory: anthem", {"another", "theory", "anthem"});
  expect("the-end", {"theend"});                              // punctuation goes first
  expect("\u00c9mile\u00a0the\u2009B", {"\u00e9mile", "b"});  // white space of Unicode
  expect("\u2018the\u2019 cat", {"\u2018", "\u2019", "cat"});
  expect("x\xff", {"x\ufffd"});
  expect("", {});
}

TEST(ComparedWords, FindTheByteWhereCharactersEnd) {
  const std::string text = "a\u00e9\u6c34\U0001F600b";
  EXPECT_EQ(text::end_of_characters(text, 0), 0U);
  EXPECT_EQ(text::end_of_characters(text, 2), 3U);
  EXPECT_EQ(text::end_of_characters(text, 4), 10U);
  EXPECT_EQ(text::end_of_characters(text, 9), text.size());
}

}  // namespace
}  // namespace tessera::testing
