#include "tessera/text/compared_words.h"

#include <algorithm>

#include "text/unicode.h"

namespace tessera::text {
namespace {

bool is_ascii_punctuation(char32_t character) {
  return (character >= '!' && character <= '/') || (character >= ':' && character <= '@') ||
         (character >= '[' && character <= '`') || (character >= '{' && character <= '~');
}

// In small letters, without punctuation.
std::string plain(std::string_view given) {
  const std::string text = well_formed(given);
  std::string result;
  for (size_t at = 0; at < text.size();) {
    const char32_t character = next_character(text, at);
    if (!is_ascii_punctuation(character)) append_character(result, lower_case(character));
  }
  return result;
}

}  // namespace

std::vector<std::string> compared_words(std::string_view text) {
  const std::string letters = plain(text);
  std::string kept;
  std::string word;
  // An article ends where any other character than a word's stands.
  const auto end_word = [&] {
    kept += word == "a" || word == "an" || word == "the" ? " " : word;
    word.clear();
  };
  for (size_t at = 0; at < letters.size();) {
    const char32_t character = next_character(letters, at);
    const bool is_inside = is_word_character(character);
    if (!is_inside) end_word();
    append_character(is_inside ? word : kept, character);
  }
  end_word();
  std::vector<std::string> words(1);
  for (size_t at = 0; at < kept.size();) {
    const char32_t character = next_character(kept, at);
    if (!is_white_space(character)) {
      append_character(words.back(), character);
    } else if (!words.back().empty()) {
      words.emplace_back();
    }
  }
  if (words.back().empty()) words.pop_back();
  return words;
}

size_t end_of_characters(std::string_view text, int64_t count) {
  size_t at = 0;
  for (int64_t i = 0; i < count && at < text.size(); ++i) at += character_length(text[at]);
  return std::min(at, text.size());
}

}  // namespace tessera::text
